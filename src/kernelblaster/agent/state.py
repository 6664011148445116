"""State that nodes hand on.

Everything here is small plain data. Sources, evaluations and replies lie in files (`files.py`); the state names them
by hash or key.
"""

from __future__ import annotations

import operator
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from kernelblaster.agent.outcome import (
    Conclusion,
    Incumbent,
    OutcomeStatus,
    PendingRequest,
    RecalledKernel,
    RolloutResult,
    StopReason,
)
from kernelblaster.models.base import Usage, sum_dollars

StateUpdate = dict[str, Any]
"""What a node changes: field of its state -> new value."""


class FailureKind(StrEnum):
    """Failures of a reply that never reach the evaluator; beside them stand the verdicts."""

    UNUSABLE_REPLY = "unusable_reply"
    INAPPLICABLE_EDITS = "inapplicable_edits"
    """Goes back to the model once in a row."""
    DUPLICATE = "duplicate"


class StepDiagnosis(BaseModel, frozen=True):
    """The bottleneck state of an incumbent."""

    parent: str
    state: str
    confidence: float
    evidence: list[str] = []
    causes: list[str] = []
    """What limits it, one line per state with its confidence and estimated gain."""
    decided_by: str
    """`rules`, `model`, or `rules (undecided)` when the model had no usable reply."""


class PromptLesson(BaseModel, frozen=True):
    """A lesson as the prompt shows it."""

    id: str
    text: str


class PromptCore(BaseModel, frozen=True):
    """A verified kernel of another problem as the prompt shows it."""

    id: str
    told: str
    """Whose it is and how fast, one line."""
    source: str


class Hypothesis(BaseModel, frozen=True):
    """A technique that a prompt offers beside the one that was drawn."""

    technique: str
    summary: str


class Choice(BaseModel, frozen=True):
    """The technique retrieved for a step, with the numbers and lessons shown to the model.

    `expected_speedup` and `p_correct` are posterior means on this architecture (see the knowledge base).
    """

    technique: str
    summary: str
    how_to: list[str]
    checks: list[str]
    expected_speedup: float
    p_correct: float
    evidence_count: int
    backed_off_to: str
    lessons: list[PromptLesson] = []
    core: PromptCore | None = None
    others: list[Hypothesis] = []
    """What else was ranked high, the best first."""


class Failure(BaseModel, frozen=True):
    """Why an attempt has to be repaired."""

    kind: str
    """A verdict or a `FailureKind`."""
    reason: str
    log: str = ""


class Spent(BaseModel, frozen=True):
    """What the model calls of one step cost so far. `dollars` is None when a price is unknown."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = 0.0

    def plus(self, usage: Usage) -> Spent:
        """With one more call."""
        return Spent(
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            dollars=sum_dollars(self.dollars, usage.dollars),
        )


class Attempt(BaseModel, frozen=True):
    """One reply of the model inside a step, as far as it has come."""

    number: int
    """0 for the first, then one per repair."""
    candidate: str | None = None
    """SHA-256 of the candidate's source; None when the reply held none."""
    stated_speedup: float | None = None
    """What the reply expects."""
    base: str | None = None
    """SHA-256 of the last file that the model gave, where this reply holds none; None where it gave none, or the
    parent. Edits of the reply refer to it."""
    base_failure: Failure | None = None
    """Of that file."""
    evaluation: str | None = None
    """Key of the evaluation file."""
    failure: Failure | None = None
    verdict: str | None = None
    """Of the evaluation, or for a duplicate that of the kernel it repeats; None when there was no source."""
    swept: bool = False
    """Whether a sweep has chosen the candidate among the variants of what the reply held."""
    next_best: list[str] = []
    """SHA-256 of variants that are judged in this order when the candidate is not correct."""
    beyond_repair: bool = False
    """The model was asked to mend it and has no answer: the step ends with this failure."""

    def without_file(self, failure: Failure) -> Attempt:
        """The next reply, which holds no file: the last one that was given stays the one to be mended."""
        given = (self.candidate, self.failure) if self.candidate else (self.base, self.base_failure)
        return Attempt(number=self.number + 1, base=given[0], base_failure=given[1], failure=failure)


class Tried(BaseModel, frozen=True):
    """One finished step, as later prompts of the rollout tell it."""

    technique: str
    outcome: str
    """A decision, a verdict or a failure kind."""
    speedup: float | None = None
    """Measured against the parent of that step."""
    stated_speedup: float | None = None
    accepted: bool = False
    reason: str = ""
    """How it failed, in a few words; empty when it was correct."""
    changes: list[str] = []
    """The metrics that changed most against the parent."""
    crossover: bool = False
    """Whether another kernel of the search was shown beside the parent."""


class Allocation(BaseModel, frozen=True):
    """A reply that the archive hands out: who improves which kernel."""

    index: int
    parent: Incumbent
    donor: str | None = None
    """SHA-256 of another fast kernel that the prompt shows; None for most."""
    potential: float | None = None
    """By which the parent was chosen; see `agent.archive`."""


class BegunStep(BaseModel, frozen=True):
    """The beginning of a step, stored before the model is asked, so that a replayed step begins the same way.

    By then the knowledge base has learned more and would choose something else.
    """

    format: Literal["kernelblaster-step-1"] = "kernelblaster-step-1"
    parent: str
    """SHA-256 of the incumbent."""
    started: float
    """Unix time in seconds."""
    diagnosis: StepDiagnosis
    choice: Choice | None = None
    """None until a technique was drawn."""


class RolloutState(BaseModel):
    """State of one rollout."""

    round: int
    index: int
    incumbent: Incumbent
    step: int = 0
    """1-based number of the step in progress; 0 before the first."""
    generation: int = 0
    """As in `RolloutResult`; it is then the number of its one step."""
    donor: str | None = None
    """As in `Allocation`."""
    siblings: list[int] = []
    """Indices of the generation's replies on the same kernel, its own among them; empty for a chain."""
    diagnosis: StepDiagnosis | None = None
    choice: Choice | None = None
    attempt: Attempt | None = None
    spent: Spent = Spent()
    """By the step in progress."""
    step_started: float = 0.0
    """Unix time in seconds; 0 before the first step."""
    begun: BegunStep | None = None
    """The step in progress as an earlier start began it; None when none did."""
    tried: list[Tried] = []
    """The latest steps, bounded."""
    tabu: list[str] = []
    """Techniques tried since the last acceptance."""
    seen: dict[str, str] = {}
    """Shortened hash -> verdict of every candidate this rollout evaluated."""
    idle: int = 0
    """Steps in a row without an acceptance."""
    inconclusive: int = 0
    """Steps in a row whose candidate was correct and neither faster nor slower."""
    transitions: int = 0
    verdicts: dict[str, int] = {}
    """Evaluated candidates by verdict."""
    stop: StopReason | None = None
    pending: list[PendingRequest] = []
    """The question that keeps the rollout from going on, if there is one."""
    finished: list[RolloutResult] = []
    """Empty until the rollout ends; then its result, handed to the problem's state."""

    @property
    def edited(self) -> str:
        """SHA-256 of the file that edits in the next reply refer to: the one to be repaired, else the parent."""
        attempt = self.attempt
        return (attempt and (attempt.candidate or attempt.base)) or self.incumbent.sha256


def in_order(known: list[RolloutResult], new: list[RolloutResult]) -> list[RolloutResult]:
    """Results ordered by round, generation and index, whichever rollout ended first."""
    return sorted((*known, *new), key=lambda result: (result.round, result.generation, result.index))


class RolloutOutput(BaseModel):
    """What a rollout hands to the problem's state."""

    finished: list[RolloutResult] = []
    pending: list[PendingRequest] = []


class ProblemState(BaseModel):
    """State of one problem's search."""

    start: Incumbent | None = None
    recalled: RecalledKernel | None = None
    """What the knowledge base held of the problem; None where there was nothing to recall."""
    round: int = 0
    """1-based number of the round in progress."""
    generation: int = 0
    """1-based number of the archive's generation in progress in this round; 0 before the first, and for chains."""
    handed_out: list[Allocation] = []
    """Replies of the generation in progress."""
    round_over: bool = False
    """Whether the archive hands out nothing more in this round."""
    finished: Annotated[list[RolloutResult], in_order] = []
    pending: Annotated[list[PendingRequest], operator.add] = []
    """Questions without an answer yet; the search ends here until there is one."""
    unhurried: Annotated[list[PendingRequest], operator.add] = []
    """Questions without an answer yet that the search does not wait for."""
    written: str | None = None
    """SHA-256 of the start that the model has written for a problem that has none."""
    failure: str | None = None
    """Why the start cannot be used."""
    failed_as: OutcomeStatus = OutcomeStatus.FAILED
    """How a search without a usable start ends."""
    conclusion: Conclusion | None = None

    @property
    def cut_off(self) -> bool:
        """Whether a budget ended a rollout; the next start goes on with it."""
        return any(result.stop is StopReason.BUDGET for result in self.finished)
