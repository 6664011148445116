"""One edge of the search, as it is stored and learned from.

A transition is written once, when its candidate has been judged, and never changed. It carries what any later
question needs (which state, which technique, on what, how it ended, what it cost), but no source text: sources lie
in the run directory by their SHA-256.
"""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.evaluation.results import Comparison, Decision, Verdict
from kernelblaster.problems.problem import Precision

FAILURE_REWARD: dict[Verdict, float] = {
    Verdict.NOT_EMULATABLE: -0.1,
    Verdict.BUILT: -0.1,
    Verdict.COMPILE_ERROR: -0.3,
    Verdict.LOAD_ERROR: -0.3,
    Verdict.RUNTIME_ERROR: -0.5,
    Verdict.TIMEOUT: -0.5,
    Verdict.WRONG_SHAPE: -0.5,
    Verdict.WRONG_VALUES: -0.5,
    Verdict.NONDETERMINISTIC: -0.5,
    Verdict.INPUT_MUTATED: -0.6,
    Verdict.SANITIZER_ERROR: -0.6,
    Verdict.REWARD_HACK: -1.0,
}
"""Reward per kind of failure, on the scale of log speed-ups (log 2 = 0.69).

A candidate of which nothing but its build is known, or that the emulator merely lacks an instruction for, costs little;
one that does not build is cheaper than one that computes the wrong thing, since its error is found early and tells the
model what to fix; one that would have corrupted memory or inputs is worse; an attempt to fool the judge costs more than
halving the time would bring.
"""


def reward(verdict: Verdict, comparison: Comparison | None) -> float:
    """Natural logarithm of the speed-up against the parent, or a fixed negative.

    Args:
        verdict: how the candidate fared.
        comparison: candidate against its parent; None when it was not timed.

    Returns:
        log(speedup) when correct and decided; 0.0 when correct but inconclusive or not timed; else `FAILURE_REWARD`.
    """
    if verdict is not Verdict.CORRECT:
        return FAILURE_REWARD[verdict]
    if comparison is None or comparison.decision is Decision.INCONCLUSIVE:
        return 0.0
    return math.log(comparison.speedup)


def _now() -> datetime:
    return datetime.now(UTC)


class Transition(BaseModel):
    """One judged candidate. Identified by (`run`, `slot`): a resumed run produces the same pair again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["kernelblaster-transition-1"] = "kernelblaster-transition-1"
    run: str = Field(min_length=1)
    """The search that made it; unique across machines."""
    slot: str = Field(min_length=1)
    """Its place in the search, stable over resumes: `level1/023/r2/rollout-1/step-3`."""
    problem: str
    """`level1/023`"""
    op_family: str
    """See `knowledge.families.OpFamily`."""
    precision: Precision
    arch: str
    """`sm_90`"""
    device_kind: DeviceKind
    round: int = Field(0, ge=0)
    rollout: int = Field(ge=0)
    step: int = Field(ge=0)
    parent_sha256: str
    candidate_sha256: str | None
    """None when no reply held a candidate."""
    state: str
    state_confidence: float = Field(ge=0, le=1)
    technique: str
    lessons: tuple[str, ...] = ()
    """Ids of the lessons the prompt showed."""
    attempts: int = Field(1, ge=1)
    """Model calls this step took: 1 and the repairs."""
    verdict: Verdict
    reason: str = ""
    expected_speedup: float | None = Field(None, gt=0)
    """What the reply promised."""
    duplicate: bool = False
    """The last reply repeated a kernel that this chain had judged or stood on; the verdict is that kernel's."""
    speedup: float | None = Field(None, gt=0)
    """Parent's time / candidate's time; None unless correct and compared."""
    speedup_low: float | None = Field(None, gt=0)
    """95 % interval; None where only the measured ratio was kept."""
    speedup_high: float | None = Field(None, gt=0)
    decision: Decision | None = None
    headroom: float | None = Field(None, gt=0)
    """Of the parent: its time / attainable time; None where that is not known."""
    declared: tuple[str, ...] = ()
    """Techniques that the reply says it applied."""
    done: str | None = None
    """Technique that is credited: `technique` as far as detectors confirm it. None in records of earlier versions."""
    gained: tuple[str, ...] = ()
    """Features (`cuda_source.features`) that the candidate has and its parent had not."""
    reward: float
    metric_deltas: dict[str, float] = {}
    """Candidate minus parent, for metrics that both profiles hold."""
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)
    dollars: float | None = Field(None, ge=0)
    """None when the price is unknown."""
    model: str
    recording: str | None = None
    """Identity of the recording that answered; None where a model was asked."""
    libraries: tuple[Library, ...] = ()
    weakly_verified: bool = False
    started_at: AwareDatetime = Field(default_factory=_now)
    finished_at: AwareDatetime = Field(default_factory=_now)

    @model_validator(mode="after")
    def _comparison_is_whole(self) -> Self:
        if (self.speedup is None) != (self.decision is None):
            raise ValueError("speedup and decision are given together or not at all")
        if (self.speedup_low is None) != (self.speedup_high is None):
            raise ValueError("an interval has two ends")
        if self.speedup_low is not None and self.speedup is None:
            raise ValueError("an interval is one of a speed-up")
        if self.speedup is not None and self.verdict is not Verdict.CORRECT:
            raise ValueError(f"a candidate with verdict {self.verdict} has no speed-up")
        return self

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that identify (run, slot)."""
        return hashlib.sha256(f"{self.run}\0{self.slot}".encode()).hexdigest()[:16]

    def as_evidence(self) -> Transition:
        """What is learned from: this; of a recording, the same for everybody who replays it, however often.

        A recording answers the same again: an edge of its search that was judged before teaches nothing new.
        """
        if self.recording is None:
            return self
        place = (self.problem, self.precision, self.arch, self.device_kind, self.state, self.technique)
        edge = "\0".join((*place, self.parent_sha256, self.candidate_sha256 or "", *self.libraries))
        slot = f"{self.problem}/{hashlib.sha256(edge.encode()).hexdigest()[:16]}"
        return self.model_copy(update={"run": f"recording-{self.recording}", "slot": slot})

    @property
    def credited(self) -> str:
        """The technique that its outcome counts for."""
        return self.done or self.technique

    @property
    def succeeded(self) -> bool:
        """Correct, and faster than its parent beyond noise."""
        return self.verdict is Verdict.CORRECT and self.decision is Decision.FASTER


LEAST_DELTA = 0.5
"""In points of a percentage; smaller changes are none that stand out."""


def metric_deltas(parent: dict[str, float], candidate: dict[str, float]) -> dict[str, float]:
    """Candidate minus parent for the metrics that both profiles hold; a metric missing in one is left out."""
    return {name: candidate[name] - parent[name] for name in sorted(parent.keys() & candidate.keys())}


def telling_changes(deltas: dict[str, float], most: int = 3) -> list[str]:
    """The largest changes among percentages, as text; smaller ones than half a point tell nothing."""
    percent = [(name, value) for name, value in deltas.items() if "pct" in name and abs(value) >= LEAST_DELTA]
    return [f"{name} {value:+.1f}" for name, value in sorted(percent, key=lambda item: -abs(item[1]))[:most]]
