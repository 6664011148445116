"""What a search tells the outside while it runs: versioned events, one JSON object each.

A continued search runs through its nodes again and emits the same events again; a journal keeps each once
(`identity`). Events carry facts only; they hold no source text and no prompts, but for what had come of a reply that
was cut short (`ReplyCutShort`).
"""

from __future__ import annotations

import time
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kernelblaster.agent.files import DrawnLesson, SweepPoint
from kernelblaster.agent.outcome import OutcomeStatus, StopReason
from kernelblaster.agent.state import Allocation


class _Event(BaseModel):
    """Fields of every event. `at` is Unix time in seconds; `slot` names the place in the search."""

    model_config = ConfigDict(frozen=True)

    format: Literal["kernelblaster-event-1"] = "kernelblaster-event-1"
    at: float = Field(default_factory=time.time)
    problem: str
    slot: str

    telling: ClassVar[tuple[str, ...]] = ()
    """Fields that tell an event of the same kind and place from one that a resumed search tells again."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two events the same: kind, slot and the fields that tell them apart."""
        return tuple(str(getattr(self, name)) for name in ("kind", "slot", *self.telling))


class StartWritten(_Event):
    """The model has written a first kernel for a problem that has none, and it was judged."""

    kind: Literal["start_written"] = "start_written"
    candidate: str | None
    verdict: str
    """Of the judge, or `unusable_reply`."""
    reason: str
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None


class StartProfiled(_Event):
    """The starting kernel was evaluated; what its problem may be held against is told with it, in microseconds.

    Attributes:
        attainable_us: what a well-written kernel is expected to reach; None where that is not known.
        pytorch_us: PyTorch's times on this very GPU by mode; empty where nobody has measured them.
    """

    kind: Literal["start_profiled"] = "start_profiled"
    verdict: str
    reason: str
    median_us: float | None
    floor_fraction: float | None
    modelled: bool | None
    attainable_us: float | None = None
    pytorch_us: dict[str, float] = {}


class Recalled(_Event):
    """The verified kernel that the knowledge base holds of the problem was judged against the start.

    Attributes:
        core: its id in the knowledge base.
        start: SHA-256 of the start.
        speedup, accepted, reason: as in `RecalledKernel`.
    """

    kind: Literal["recalled"] = "recalled"
    core: str
    start: str
    candidate: str
    verdict: str
    speedup: float | None
    decision: str | None
    median_us: float | None
    accepted: bool
    reason: str


class RoundStarted(_Event):
    """A round of rollouts fans out."""

    kind: Literal["round_started"] = "round_started"
    telling: ClassVar[tuple[str, ...]] = ("incumbent",)
    round: int
    rollouts: int
    incumbent: str
    gain: float


class HandedOut(_Event):
    """A generation of the archive begins: which kernels its replies improve, and which is shown beside one."""

    kind: Literal["handed_out"] = "handed_out"
    round: int
    generation: int
    allocations: list[Allocation]


class StepStarted(_Event):
    """A rollout begins a step on `parent`."""

    kind: Literal["step_started"] = "step_started"
    telling: ClassVar[tuple[str, ...]] = ("parent",)
    parent: str
    gain: float


class Classified(_Event):
    """The bottleneck of the parent was named."""

    kind: Literal["classified"] = "classified"
    telling: ClassVar[tuple[str, ...]] = ("state",)
    state: str
    confidence: float
    decided_by: str
    evidence: list[str]


class Selected(_Event):
    """A technique was drawn."""

    kind: Literal["selected"] = "selected"
    telling: ClassVar[tuple[str, ...]] = ("technique",)
    state: str
    technique: str
    expected_speedup: float | None
    p_correct: float | None
    evidence_count: int
    core: str | None = None
    """Of the code memory, shown in the prompt; None where none was."""
    lessons: list[str] = []
    """Ids of the lessons that the prompt shows."""


class Generated(_Event):
    """The model answered. `candidate` is None when the reply held no usable source; `reason` says why."""

    kind: Literal["generated"] = "generated"
    telling: ClassVar[tuple[str, ...]] = ("candidate",)
    candidate: str | None
    stated_speedup: float | None
    reason: str
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    edits: int = 0
    """Of a known kernel that make the candidate up; 0 for a whole file."""
    written_share: float | None = None
    """Characters of code in the reply over those of the candidate: what edits saved is one minus that."""


class Swept(_Event):
    """Variants of a reply's source were timed against each other.

    Attributes:
        candidate: the source as it was written.
        winner: the fastest variant; None when none was timed.
        gain: time of the source as written over that of the winner; None when either has none.
        points: every variant, the one as written first.
        seconds: wall time, compilation included.
        stages: of it: build, inputs, time, and wait, while others used the device.
        skipped: why there was no sweep; empty when there was.
    """

    kind: Literal["swept"] = "swept"
    telling: ClassVar[tuple[str, ...]] = ("candidate",)
    candidate: str
    winner: str | None = None
    gain: float | None = None
    points: list[SweepPoint] = []
    seconds: float = 0.0
    stages: dict[str, float] = {}
    skipped: str = ""


class Evaluated(_Event):
    """A candidate was judged against its parent. `reused` when the evaluation came from a file."""

    kind: Literal["evaluated"] = "evaluated"
    telling: ClassVar[tuple[str, ...]] = ("candidate", "verdict")
    candidate: str
    verdict: str
    reason: str
    speedup: float | None
    decision: str | None
    median_us: float | None
    reused: bool


class Credited(_Event):
    """What a step is credited with.

    Attributes:
        asked: technique of the prompt.
        declared: techniques that the reply says it applied.
        credited: technique that its outcome counts for.
        gained: features that the candidate has and its parent had not, as far as detectors confirm them.
        refuted: features that are new in its source and that its machine code does not have.
        machine_code: whether machine code had a say.
    """

    kind: Literal["credited"] = "credited"
    asked: str
    declared: list[str]
    credited: str
    gained: list[str]
    refuted: list[str]
    machine_code: bool

    @property
    def told(self) -> str:
        """The technique that was done; where another was asked for, both."""
        return self.credited if self.credited == self.asked else f"{self.credited} (asked for {self.asked})"


class Decided(_Event):
    """A step ended: its candidate was accepted as the new incumbent, or not."""

    kind: Literal["decided"] = "decided"
    telling: ClassVar[tuple[str, ...]] = ("outcome",)
    technique: str
    outcome: str
    accepted: bool
    gain: float


class RolloutStopped(_Event):
    """A rollout ended."""

    kind: Literal["rollout_stopped"] = "rollout_stopped"
    telling: ClassVar[tuple[str, ...]] = ("reason", "incumbent")
    reason: StopReason
    steps: int
    incumbent: str
    gain: float


class Waiting(_Event):
    """The model wrote the request down and has not answered yet."""

    kind: Literal["waiting"] = "waiting"
    telling: ClassVar[tuple[str, ...]] = ("request_id",)
    request_id: str
    request_file: str


class ReplyCutShort(_Event):
    """A streamed reply did not come to its end.

    Attributes:
        reason: what cut it short.
        characters: that had arrived.
        partial: the end of them; the one event that holds what a model wrote.
    """

    kind: Literal["reply_cut_short"] = "reply_cut_short"
    telling: ClassVar[tuple[str, ...]] = ("number",)
    number: int
    """0 for the first attempt at the reply."""
    reason: str
    characters: int
    partial: str


class LessonsDrawn(_Event):
    """Lessons were drawn from the measured pairs of a generation, or of a round of chains.

    Attributes:
        drawn: what each finding did to the knowledge base.
        skipped: why there is none of a pair, one line each.
        prompt_tokens, completion_tokens, dollars: of the calls that asked; dollars None when a price is unknown.
    """

    kind: Literal["lessons_drawn"] = "lessons_drawn"
    drawn: list[DrawnLesson]
    skipped: list[str]
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None


class Reflected(_Event):
    """Reflection on a round: the knowledge base's answer to each change. `skipped` says why there was none."""

    kind: Literal["reflected"] = "reflected"
    round: int
    changes: list[str]
    refused: list[str]
    skipped: str


class FinalistMeasured(_Event):
    """A finalist was measured against the start."""

    kind: Literal["finalist_measured"] = "finalist_measured"
    telling: ClassVar[tuple[str, ...]] = ("verdict", "rejected")
    candidate: str
    verdict: str
    speedup: float | None
    decision: str | None
    rejected: str | None
    review: str | None = None
    """As in `Finalist`; absent in journals written before it was recorded."""


class Finalized(_Event):
    """The search ended."""

    kind: Literal["finalized"] = "finalized"
    telling: ClassVar[tuple[str, ...]] = ("status", "final_sha256")
    status: OutcomeStatus
    reason: str
    speedup: float | None
    final_sha256: str | None


Event = Annotated[
    StartWritten
    | StartProfiled
    | Recalled
    | RoundStarted
    | HandedOut
    | StepStarted
    | Classified
    | Selected
    | Generated
    | Swept
    | Evaluated
    | Credited
    | Decided
    | RolloutStopped
    | Waiting
    | LessonsDrawn
    | ReplyCutShort
    | Reflected
    | FinalistMeasured
    | Finalized,
    Field(discriminator="kind"),
]
"""Any event; read a line of `events.jsonl` with `parse_event`."""

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(line: str | bytes) -> Event:
    """Read one JSON line. Raises pydantic's ValidationError."""
    return _ADAPTER.validate_json(line)


class EventSink(Protocol):
    """Where events go. Called from the event loop's thread; must not block for long."""

    def emit(self, event: Event) -> None:
        """Take one event."""
        ...
