"""The prompts of the content trial: the search's own, built by its own nodes, with one section exchanged between arms.

Task, source, profile, time and bottleneck are told in the same words in all arms. What they say to try:

- free: whatever the author expects to help most;
- knowledge: what the knowledge base retrieves, with its how-to, checks, lessons and alternatives. The shipped one holds
  no statistics, and no core is shown, so that nothing in it was learned on the parent's family;
- placebo: the same form with what it retrieves for a bottleneck that the parent does not have, of the draws tried the
  one whose prompt is nearest in length;
- donor: as knowledge, and the core that code memory shows: a fast kernel of another problem.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from langgraph.runtime import Runtime
from parents import PRECISION, WORKLOAD, Parent, h200_facts

from kernelblaster.agent.context import Concurrency, ProblemContext
from kernelblaster.agent.events import Event
from kernelblaster.agent.nodes.retrieve import OTHERS_SHOWN, choice_of, retrieve
from kernelblaster.agent.nodes.step import classify
from kernelblaster.agent.outcome import Incumbent
from kernelblaster.agent.prompting import generate_request
from kernelblaster.agent.state import Choice, Hypothesis, RolloutState
from kernelblaster.config import SearchConfig, SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.features import source_features
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.knowledge.decisions import NoTechnique, Selection, SelectionContext
from kernelblaster.knowledge.derived import observed
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.schema import TechniqueEntry
from kernelblaster.models.base import Message, Reply, Request, Usage
from kernelblaster.problems.problem import TensorSpec
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.problems.varied_parameters import fixed_parameters

SEED = 20261123
STEP = 1
REPLIES = 2
"""Of each arm and parent; the donor's arm has one, at the index whose turn it is to be shown a core."""
DONOR_INDEX = 1
PLACEBO_DRAWS = 8
_PARENT = "parent"
"""Key of the parent's evaluation."""
_OFF = (SearchPart.SWEEP, SearchPart.EDITS, SearchPart.HISTORY, SearchPart.REPAIRS)
"""What would let one arm's replies reach another, or hide what a reply itself is worth."""


class Arm(StrEnum):
    """What a prompt says to try."""

    FREE = "free"
    KNOWLEDGE = "knowledge"
    PLACEBO = "placebo"
    DONOR = "donor"


class OfParent(Protocol):
    """What is asked of a parent."""

    @property
    def parent(self) -> str:
        """Its id."""
        ...


Asked = TypeVar("Asked", bound=OfParent)


def prompt_id(parent: str, arm: Arm, reply: int) -> str:
    """Of the prompt for that reply of an arm."""
    return hashlib.sha256(f"{SEED}/{parent}/{arm}/{reply}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Prompt:
    """One question of the trial."""

    parent: str
    family: str
    arm: Arm
    reply: int
    technique: str
    messages: tuple[Message, ...]

    @property
    def id(self) -> str:
        """Names its files; says nothing of arm or parent."""
        return prompt_id(self.parent, self.arm, self.reply)

    @property
    def text(self) -> str:
        """What an author reads."""
        return "\n\n".join(f"===== {message.role} =====\n\n{message.content}" for message in self.messages)


class _Undecided:
    """Where the rules do not decide, their best guess stands: no model names a bottleneck in this trial."""

    name = "undecided"

    async def complete(self, request: Request) -> Reply:
        return Reply(text="", usage=Usage(prompt_tokens=0, completion_tokens=0, dollars=None), model=self.name)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        return None


@dataclass(frozen=True)
class _Gpu:
    """An evaluator that knows its GPU and is never asked to judge."""

    facts: DeviceFacts

    @property
    def device(self) -> _Gpu:
        return self


class _Unheard:
    def emit(self, event: Event) -> None:
        """Nobody listens."""


@dataclass(frozen=True)
class Asking:
    """The prompts of one parent.

    Args:
        parent: the kernel.
        experience: the knowledge base as it ships.
        folder: where the search keeps files of its own.
    """

    parent: Parent
    experience: Experience
    folder: Path

    def prompts(self) -> Iterator[Prompt]:
        """Of all arms. Raises ProblemError."""
        for index in range(REPLIES):
            yield self._prompt(Arm.FREE, index, self._retrieved(Arm.FREE, index))
            knowing = self._retrieved(Arm.KNOWLEDGE, index)
            known = self._prompt(Arm.KNOWLEDGE, index, knowing)
            yield known
            yield self._placebo(index, knowing, len(known.text))
        showing = self._retrieved(Arm.DONOR, DONOR_INDEX)
        if showing.choice is not None and showing.choice.core is not None:
            yield self._prompt(Arm.DONOR, DONOR_INDEX, showing)

    def _context(self, arm: Arm) -> ProblemContext:
        ablated = {
            Arm.FREE: (*_OFF, SearchPart.RETRIEVAL, SearchPart.CODE_MEMORY),
            Arm.DONOR: _OFF,
        }.get(arm, (*_OFF, SearchPart.CODE_MEMORY))
        problem = self.parent.problem
        context = ProblemContext(
            run="content-trial",
            problem=problem,
            op_family=self.parent.family,
            precision=PRECISION,
            workload=WORKLOAD,
            tensors=self._tensors,
            config=SearchConfig(seed=SEED, ablate=ablated),
            evaluator=_Gpu(self._facts),
            experience=self.experience,
            model=_Undecided(),
            directory=self.folder / arm,
            events=_Unheard(),
            limits=Concurrency(evaluations=asyncio.Semaphore(1)),
            fixed_parameters=self._fixed_parameters,
        )
        sha256 = context.files.put_candidate(self.parent.source)
        context.files.put_evaluation(_PARENT, self.parent.evaluation(self._facts, sha256))
        return context

    @cached_property
    def _tensors(self) -> tuple[TensorSpec, ...]:
        return tensor_specs(self.parent.problem, WORKLOAD, PRECISION)

    @cached_property
    def _fixed_parameters(self) -> tuple[str, ...]:
        return fixed_parameters(self.parent.problem, undeclared_extents(self.parent.problem))

    @cached_property
    def _facts(self) -> DeviceFacts:
        return h200_facts()

    def _retrieved(self, arm: Arm, index: int) -> RolloutState:
        """A step on the parent when its technique is chosen, one of as many siblings as an arm has replies."""
        incumbent = Incumbent(sha256=source_digest(self.parent.source), evaluation=_PARENT)
        siblings = list(range(REPLIES))
        state = RolloutState(round=1, index=index, incumbent=incumbent, step=STEP, siblings=siblings)
        runtime = Runtime(context=self._context(arm))
        state = state.model_copy(update=asyncio.run(classify(state, runtime)))
        return state.model_copy(update=asyncio.run(retrieve(state, runtime)))

    def _prompt(self, arm: Arm, index: int, state: RolloutState) -> Prompt:
        assert state.choice is not None
        messages = generate_request(self._context(arm), state, 0).messages
        technique = state.choice.technique
        return Prompt(self.parent.id, str(self.parent.family), arm, index, technique, messages)

    def _placebo(self, index: int, knowing: RolloutState, length: int) -> Prompt:
        drawn = np.random.default_rng([SEED, index, int.from_bytes(self.parent.id.encode()[-8:], "big")])
        choices = self._foreign(drawn, knowing)
        asked = [
            self._prompt(Arm.PLACEBO, index, knowing.model_copy(update={"choice": choice}))
            for choice in choices
        ]  # fmt: skip
        return min(asked, key=lambda prompt: abs(len(prompt.text) - length))

    def _foreign(self, drawn: np.random.Generator, knowing: RolloutState) -> list[Choice]:
        """What is retrieved for bottlenecks that the parent does not have."""
        base, diagnosis = self.experience.base(), knowing.diagnosis
        assert diagnosis is not None
        evaluation = self.parent.evaluation(self._facts, knowing.incumbent.sha256)
        assert evaluation.profile is not None
        written = source_features(self.parent.source)
        ruled = base.classify(evaluation.profile, self._facts, evaluation.timing, written)
        own = {diagnosis.state, *(cause.state for cause in ruled.causes)}
        useful = {name for state in own for name in base.states[state].techniques}
        where = SelectionContext(
            arch=self._facts.arch,
            device_kind=self._facts.kind,
            op_family=self.parent.family,
            precision=PRECISION,
            observed=observed(evaluation.profile, self._facts, evaluation.timing, written),
        )
        found: list[Choice] = []
        foreign = sorted(set(base.states) - own)
        for state in (str(name) for name in drawn.permutation(foreign)):
            try:
                selection = base.select(state, where, drawn, tabu=useful)
            except NoTechnique:
                continue
            others = _alternatives(selection, base.techniques)
            found.append(choice_of(selection, lessons=True).model_copy(update={"others": others}))
            if len(found) == PLACEBO_DRAWS:
                break
        return found


def _alternatives(selection: Selection, techniques: Mapping[str, TechniqueEntry]) -> list[Hypothesis]:
    names = [alternative.technique for alternative in selection.alternatives][:OTHERS_SHOWN]
    return [Hypothesis(technique=name, summary=techniques[name].summary) for name in names]


def in_blocks(prompts: Sequence[Asked]) -> list[Asked]:
    """The order in which they are asked: parent by parent in random order, the prompts of each in random order."""
    drawn = np.random.default_rng(SEED)
    parents = [str(name) for name in drawn.permutation(sorted({prompt.parent for prompt in prompts}))]
    return [
        own[place]
        for parent in parents
        for own in [[prompt for prompt in prompts if prompt.parent == parent]]
        for place in drawn.permutation(len(own))
    ]
