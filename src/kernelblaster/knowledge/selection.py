"""Choosing the technique to try next.

First prune: what does not apply (architecture, precision, operator family, library) and what the measured
hardware bounds make pointless. Then a search policy (`policies.py`) scores what is left by its posteriors, with one
Thompson draw each unless another is asked for; the best score wins. Deterministic for a given generator state.

Chains that start side by side from one parent have the same beliefs, and would mostly draw the same technique. They
therefore draw without replacement: what another chain has `taken` on that parent is put back only when everything
that may be tried has been taken as often.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from kernelblaster.devices.facts import compute_capability
from kernelblaster.knowledge.decisions import Alternative, NoTechnique, Selection, SelectionContext, ShownLesson
from kernelblaster.knowledge.derived import Derived
from kernelblaster.knowledge.evidence import Evidence
from kernelblaster.knowledge.expressions import KleeneValue, evaluate
from kernelblaster.knowledge.lessons import retrieve
from kernelblaster.knowledge.policies import SearchPolicy, thompson
from kernelblaster.knowledge.posterior import Posterior, posterior
from kernelblaster.knowledge.schema import (
    Applicability,
    ImportedPrior,
    Lesson,
    Prior,
    StateEntry,
    TechniqueEntry,
)
from kernelblaster.problems.problem import Precision

ALTERNATIVES = 5
NOTHING_TAKEN: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Memory:
    """What selection looks at; imported priors are indexed by technique."""

    states: Mapping[str, StateEntry]
    techniques: Mapping[str, TechniqueEntry]
    quarantined: Set[str]
    retired: Set[tuple[str, str, str, str]]
    """(state, technique, arch, device kind)"""
    evidence: Evidence
    imported: Mapping[str, Sequence[ImportedPrior]]
    lessons: Sequence[Lesson]


def select(
    memory: Memory,
    state: str,
    context: SelectionContext,
    rng: np.random.Generator,
    tabu: Set[str] = frozenset(),
    allowed: Set[str] | None = None,
    taken: Mapping[str, int] = NOTHING_TAKEN,
    policy: SearchPolicy = thompson,
) -> Selection:
    """Choose a technique of `state`.

    Args:
        memory: the knowledge base.
        state: its techniques are the candidates.
        context: where the technique would be applied.
        rng: the only source of randomness.
        tabu: techniques not to try, e.g. those this rollout already tried on this parent.
        allowed: when given, only these; they need not be listed under `state` when none that is can be chosen.
        taken: how often each technique was drawn for the same parent by chains that run side by side with this one.
        policy: scores the techniques that are left.

    Raises:
        NoTechnique: nothing is left.
        KeyError: no such state.
    """
    candidates = _least_taken(_candidates(memory, state, context, tabu, allowed), taken)
    if not candidates:
        raise NoTechnique(
            f"no technique is left to try in state {state}",
            hint="start from another parent, or allow techniques that were already tried",
        )
    measured = memory.evidence.of_techniques(candidates, state, context)
    typical = sum(memory.techniques[name].prior.mean_log_gain for name in candidates) / len(candidates)
    ceiling = _ceiling(context)
    beliefs = {
        name: posterior(
            _centred(memory.techniques[name].prior, typical),
            [belief for belief in memory.imported.get(name, ()) if belief.state == state],
            measured.get(name, ()),
            ceiling=ceiling,
        )
        for name in candidates
    }
    scores = policy(beliefs, rng)
    ranked = sorted(candidates, key=lambda name: (-scores[name], name))
    records = memory.evidence.lesson_records(context.device_kind)
    lessons = retrieve(memory.lessons, records, state, ranked[0], context, rng)
    return _selection(memory, ranked, scores, beliefs[ranked[0]], lessons)


def applies(applicability: Applicability, context: SelectionContext) -> bool:
    """Whether architecture, precision, operator family and libraries allow the technique."""
    if applicability.min_arch is not None and compute_capability(context.arch) < applicability.min_arch:
        return False
    if applicability.precisions and context.precision not in applicability.precisions:
        return False
    if applicability.op_families and context.op_family not in applicability.op_families:
        return False
    if applicability.library is not None and applicability.library not in context.libraries:
        return False
    return not (applicability.fp32_needs_tf32 and context.precision is Precision.FP32)


def is_pointless(applicability: Applicability, observed: Mapping[str, float]) -> bool:
    """Whether a hardware bound is known to leave the technique nothing to gain."""
    return any(evaluate(bound, observed) is KleeneValue.TRUE for bound in applicability.pointless_when)


def _candidates(
    memory: Memory, state: str, context: SelectionContext, tabu: Set[str], allowed: Set[str] | None
) -> list[str]:
    """Techniques to draw from; bounds give way before emptiness, and `allowed` reaches beyond the state."""
    members = _open(memory.states[state].techniques, tabu, allowed)
    members = [name for name in members if not _is_retired(memory, state, name, context)]
    applicable = [name for name in members if applies(memory.techniques[name].applicability, context)]
    promising = [
        name for name in applicable if not is_pointless(memory.techniques[name].applicability, context.observed)
    ]
    if promising or applicable:
        return promising or applicable
    return _open(memory.techniques, tabu, allowed) if allowed is not None else []


def _least_taken(names: list[str], taken: Mapping[str, int]) -> list[str]:
    fewest = min((taken.get(name, 0) for name in names), default=0)
    return [name for name in names if taken.get(name, 0) == fewest]


def _open(names: Iterable[str], tabu: Set[str], allowed: Set[str] | None) -> list[str]:
    return [name for name in names if name not in tabu and (allowed is None or name in allowed)]


def _is_retired(memory: Memory, state: str, technique: str, context: SelectionContext) -> bool:
    return (state, technique, context.arch, context.device_kind.value) in memory.retired


def _centred(prior: Prior, typical: float) -> Prior:
    """A prior as advantage over the candidates' mean: credit, which updates it, is reckoned against siblings."""
    return prior.model_copy(update={"mean_log_gain": prior.mean_log_gain - typical})


def _ceiling(context: SelectionContext) -> float:
    """Logarithm of the parent's headroom, 0 or more."""
    headroom = context.observed.get(Derived.HEADROOM)
    return math.inf if headroom is None else math.log(max(1.0, headroom))


def _selection(
    memory: Memory,
    ranked: list[str],
    scores: Mapping[str, float],
    belief: Posterior,
    lessons: tuple[ShownLesson, ...],
) -> Selection:
    chosen = ranked[0]
    entry = memory.techniques[chosen]
    return Selection(
        technique=chosen,
        summary=entry.summary,
        how_to=entry.how_to,
        checks=entry.checks,
        expected_speedup=belief.expected_speedup,
        p_correct=belief.p_correct,
        sampled_score=scores[chosen],
        evidence_count=belief.attempts,
        backed_off_to=belief.backed_off_to,
        lessons=lessons,
        alternatives=tuple(Alternative(name, scores[name]) for name in ranked[1 : 1 + ALTERNATIVES]),
        quarantined=chosen in memory.quarantined,
    )
