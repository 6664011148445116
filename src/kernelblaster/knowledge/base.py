"""The knowledge base as the agent sees it: a read-only view over one document, with its changes in effect.

Curated states and techniques, plus what the change log says: moved thresholds, proposed techniques (quarantined or
released), retirements. Built from a document that was loaded once; `KnowledgeStore.load` gives a fresh one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from typing import TypeVar

import numpy as np

from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.profiles import Profile
from kernelblaster.evaluation.results import Timing
from kernelblaster.knowledge import rules, selection
from kernelblaster.knowledge.amend import is_released
from kernelblaster.knowledge.changes import AdjustRule, RetireTechnique
from kernelblaster.knowledge.decisions import Classification, Selection, SelectionContext
from kernelblaster.knowledge.derived import observed
from kernelblaster.knowledge.evidence import DocumentEvidence, Evidence
from kernelblaster.knowledge.expressions import conditions, with_threshold
from kernelblaster.knowledge.policies import SearchPolicy, thompson
from kernelblaster.knowledge.schema import (
    KnowledgeDocument,
    Prior,
    Proposal,
    Rule,
    StateEntry,
    TechniqueEntry,
)

QUARANTINED_PRIOR = Prior(p_correct=0.4, attempts=4, mean_log_gain=0.0, gains=4)
RELEASED_PRIOR = Prior(p_correct=0.6, attempts=4, mean_log_gain=0.05, gains=2)
"""What is believed of a model's own technique before and after it has proven itself; statistics do the rest."""

_Item = TypeVar("_Item")


class KnowledgeBase:
    """States, techniques and what was measured with them.

    Args:
        document: states, techniques, lessons and changes.
        evidence: what was measured; the document's own statistics when not given.
    """

    def __init__(self, document: KnowledgeDocument, evidence: Evidence | None = None) -> None:
        self.document = document
        self._evidence = evidence or DocumentEvidence(document)

    @cached_property
    def states(self) -> Mapping[str, StateEntry]:
        """State id -> entry, with adjusted thresholds and proposed techniques."""
        return {name: self._state(name, state) for name, state in self.document.states.items()}

    @cached_property
    def techniques(self) -> Mapping[str, TechniqueEntry]:
        """Technique id -> entry, curated and proposed."""
        proposed = {name: _technique(proposal) for name, proposal in self.document.proposals.items()}
        return {**self.document.techniques, **proposed}

    @cached_property
    def quarantined(self) -> Set[str]:
        """Proposed techniques that are not yet proven."""
        return {name for name, proposal in self.document.proposals.items() if not is_released(proposal)}

    def movable_thresholds(self, states: Iterable[str]) -> list[str]:
        """One line per threshold of these states that reflection may move: rule, metric, present value, bounds."""
        return [
            f"{rule.id}: {condition.metric} {condition.op} {condition.value:g} (may be "
            f"{condition.bounds[0]:g} to {condition.bounds[1]:g})"
            for state in states
            if state in self.states
            for rule in self.states[state].rules
            for condition in conditions(rule.when)
            if condition.bounds is not None
        ]

    def classify(
        self,
        profile: Profile,
        facts: DeviceFacts,
        timing: Timing | None,
        features: Set[Feature] | None = None,
    ) -> Classification:
        """Name the bottlenecks of a profiled call.

        Args:
            profile: of one call.
            facts: of the device it was taken on.
            timing: of the whole call, which shows headroom and time spent outside kernels; None when not timed.
            features: what the kernel's source contains (`cuda_source.features`); None when it is not known.
        """
        values = observed(profile, facts, timing, features)
        return rules.classify(self.states, values, self.document.fallback_state)

    def select(
        self,
        state: str,
        context: SelectionContext,
        rng: np.random.Generator,
        tabu: Set[str] = frozenset(),
        allowed: Set[str] | None = None,
        taken: Mapping[str, int] = selection.NOTHING_TAKEN,
        policy: SearchPolicy = thompson,
    ) -> Selection:
        """Choose the technique to try next; see `selection.select`. Raises NoTechnique, KeyError (unknown state)."""
        return selection.select(self._memory, state, context, rng, tabu, allowed, taken, policy)

    @cached_property
    def without_memory(self) -> KnowledgeBase:
        """The same techniques, of which nothing was measured or imported: curated priors alone count."""
        bare = self.document.model_copy(update={"statistics": (), "imported_priors": ()})
        return KnowledgeBase(bare, DocumentEvidence(bare))

    @cached_property
    def without_pair_lessons(self) -> KnowledgeBase:
        """The same, but for the lessons that come from measured pairs."""
        lessons = tuple(lesson for lesson in self.document.lessons if not lesson.pairs)
        return KnowledgeBase(self.document.model_copy(update={"lessons": lessons}), self._evidence)

    @cached_property
    def _memory(self) -> selection.Memory:
        retirements = (entry.change for entry in self.document.changes if isinstance(entry.change, RetireTechnique))
        return selection.Memory(
            states=self.states,
            techniques=self.techniques,
            quarantined=self.quarantined,
            retired={(it.state, it.technique, it.arch, it.device_kind.value) for it in retirements},
            evidence=self._evidence,
            imported=_by_technique((belief.technique, belief) for belief in self.document.imported_priors),
            lessons=self.document.lessons,
        )

    def _state(self, name: str, state: StateEntry) -> StateEntry:
        proposed = [
            technique for technique, proposal in self.document.proposals.items() if name in proposal.technique.states
        ]
        adjusted = tuple(self._rule(rule) for rule in state.rules)
        return state.model_copy(update={"rules": adjusted, "techniques": (*state.techniques, *proposed)})

    def _rule(self, rule: Rule) -> Rule:
        when = rule.when
        for entry in sorted(self.document.changes, key=lambda entry: (entry.applied_at, entry.id)):
            if isinstance(entry.change, AdjustRule) and entry.change.rule == rule.id:
                when = with_threshold(when, entry.change.metric, entry.change.value)
        return rule.model_copy(update={"when": when})


def _technique(proposal: Proposal) -> TechniqueEntry:
    return TechniqueEntry(
        category=proposal.technique.category,
        summary=proposal.technique.summary,
        how_to=proposal.technique.how_to,
        checks=proposal.technique.checks,
        prior=RELEASED_PRIOR if is_released(proposal) else QUARANTINED_PRIOR,
    )


def _by_technique(pairs: Iterable[tuple[str, _Item]]) -> dict[str, list[_Item]]:
    grouped: dict[str, list[_Item]] = defaultdict(list)
    for technique, item in pairs:
        grouped[technique].append(item)
    return grouped
