"""How rollouts and the search of one problem ended: what is stored, and what everything above the workflow reads.

The state while a search runs is in `state.py`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, Field

from kernelblaster.evaluation.results import Comparison, Decision, Evaluation

RECALLED = "recalled from the knowledge base"
"""What stands for the technique of a recalled kernel: by which it came about, nobody knows."""


class StopReason(StrEnum):
    """Why a rollout ended."""

    STEPS = "steps"
    """All its steps were taken."""
    PATIENCE = "patience"
    """Too many steps in a row without an accepted candidate."""
    NEAR_ATTAINABLE = "near_attainable"
    """The incumbent is close to the attainable time."""
    CONVERGED = "converged"
    """Several correct candidates in a row could not be told from their parent."""
    NOTHING_TO_TRY = "nothing_to_try"
    """Every technique known for the bottleneck was tried since the last acceptance."""
    REPEATING = "repeating"
    """The model repeats kernels that the search has seen, or replies nothing of use."""
    RECORDING_EXHAUSTED = "recording exhausted"
    """The recording has no answer for this step."""
    BUDGET = "budget"
    """A cap on dollars, tokens or time was reached."""

    @classmethod
    def _missing_(cls, value: object) -> StopReason | None:
        """Files of earlier versions say `near_floor`."""
        return cls.NEAR_ATTAINABLE if value == "near_floor" else None


class Incumbent(BaseModel, frozen=True):
    """The kernel a rollout stands on."""

    sha256: str
    evaluation: str
    """Key of its evaluation file; the profile in there is the parent's profile, never taken again."""
    gain: float = 1.0
    """Product of the measured speed-ups of the accepted edges from the start to here."""


class RecalledKernel(BaseModel, frozen=True):
    """The verified kernel of the problem that the knowledge base held, judged against the start before the search."""

    core: str
    """Its id in the knowledge base."""
    candidate: str
    """SHA-256 of its source."""
    evaluation: str
    """Key of its evaluation file."""
    verdict: str
    speedup: float | None = None
    """Start time / its time; None when it is not correct."""
    accepted: bool
    """Whether the search went on from it: it is correct, and faster than the start beyond noise."""
    reason: str = ""
    """Why it did not; empty when it did."""

    @property
    def incumbent(self) -> Incumbent | None:
        """The kernel that rollouts stand on; None where it was not accepted."""
        if not self.accepted or self.speedup is None:
            return None
        return Incumbent(sha256=self.candidate, evaluation=self.evaluation, gain=self.speedup)


class PendingRequest(BaseModel, frozen=True):
    """A question a batch exchange has written down and not answered yet."""

    slot: str
    request_id: str
    request_file: str


class RolloutResult(BaseModel, frozen=True):
    """What one rollout leaves behind."""

    round: int
    index: int
    incumbent: Incumbent
    stop: StopReason
    steps: int
    transitions: int
    verdicts: dict[str, int]
    generation: int = 0
    """Of the archive that handed it out, for a rollout of one step; 0 for a chain of steps."""


class OutcomeStatus(StrEnum):
    """How the search of one problem ended."""

    IMPROVED = "improved"
    NO_IMPROVEMENT = "no_improvement"
    UNANSWERED = "unanswered"
    """The recording that stood in for a model had no candidate."""
    NOT_EMULATABLE = "not_emulatable"
    """Every candidate uses what the emulated GPU lacks."""
    FAILED = "failed"
    """The start itself is not correct, so nothing can be compared with it."""
    BUDGET = "budget"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    """It has not ended: it was stopped or killed, or goes on in another process."""


class Finalist(BaseModel, frozen=True):
    """A candidate measured again, against the start, after the search."""

    sha256: str
    gain: float
    """Product of the accepted edges during the search."""
    verdict: str
    comparison: Comparison | None = None
    """Against the start; timing samples are left out."""
    rejected: str | None = None
    """Why it was not written as the final kernel; None for the one that was."""
    review: str | None = None
    """What the model's review came to: `no veto`, or `vetoed` or `unverified` and why; None when it was not asked."""
    mends: str | None = None
    """SHA-256 of the finalist that it repairs, in which a sanitizer found something; None for what the search found."""

    @property
    def faster(self) -> bool:
        """Whether it beat the start beyond noise."""
        return self.comparison is not None and self.comparison.decision is Decision.FASTER


class Conclusion(BaseModel, frozen=True):
    """What finalize decided."""

    status: OutcomeStatus
    reason: str
    hint: str = ""
    """What to do about it; empty when there is nothing to advise."""
    finalists: list[Finalist] = []
    final_sha256: str | None = None


class ProblemOutcome(BaseModel):
    """The outcome of one problem's search."""

    format: str = "kernelblaster-outcome-1"
    problem: str
    status: OutcomeStatus
    reason: str = ""
    hint: str = ""
    """As in `Conclusion`."""
    start: Evaluation | None = None
    final_sha256: str | None = None
    final_kernel: Path | None = None
    comparison: Comparison | None = None
    """Final kernel against the start, measured again after the search; None when nothing beat the start."""
    finalists: list[Finalist] = []
    recalled: RecalledKernel | None = None
    """None where the knowledge base held none; it is not among `verdicts`, for no reply wrote it."""
    verdicts: dict[str, int] = Field(default_factory=dict)
    """Evaluated candidates by verdict."""
    transitions: int = 0
    rollouts: list[RolloutResult] = []
    pending: list[PendingRequest] = []
    unjudged: list[str] = []
    """Declared sizes at which no output is compared with the reference, see `agent.task.unjudged_sizes`."""
    pytorch_us: dict[str, float] = {}
    """What PyTorch takes on this model of GPU, by mode, as it ships; empty where nobody has measured it."""

    @property
    def speedup(self) -> float | None:
        """Start time / final time; None when nothing beat the start."""
        return self.comparison.speedup if self.comparison else None
