"""What the knowledge base is asked and what it answers: classifications and selections.

Plain values that cross from `knowledge` to the agent. They hold results, never the means to compute them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.errors import KernelBlasterError
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision


class NoTechnique(KernelBlasterError):
    """Nothing is left to try: every applicable technique is tabu or not allowed. A rollout ends here."""


@dataclass(frozen=True)
class Cause:
    """One thing that limits a kernel.

    Attributes:
        state: a state of the knowledge base.
        confidence: 0 to 1, that of the strongest rule that held.
        evidence: one line per rule that held, with the values it saw.
        gain: speed-up that mending it is estimated to bring, capped by the headroom; None where nothing tells.
    """

    state: str
    confidence: float
    evidence: tuple[str, ...]
    gain: float | None


@dataclass(frozen=True)
class Classification:
    """The bottleneck states of a profile: one leads, others hold beside it.

    Attributes:
        causes: every state of which a rule held, the most confident first; never empty.
        unknown: metrics that rules asked for and the profile lacks.
        decided: whether the rules settle it; when False a model may be asked to choose among the states.
    """

    causes: tuple[Cause, ...]
    unknown: tuple[str, ...]
    decided: bool

    @property
    def state(self) -> str:
        """The leading state."""
        return self.causes[0].state

    @property
    def confidence(self) -> float:
        """Of the leading state, 0 to 1; 0.0 when no rule held."""
        return self.causes[0].confidence

    @property
    def evidence(self) -> tuple[str, ...]:
        """For the leading state."""
        return self.causes[0].evidence


@dataclass(frozen=True)
class SelectionContext:
    """Where a technique would be applied.

    Attributes:
        arch: `sm_90`.
        device_kind: statistics of the other kind are never looked at.
        op_family: see `families`.
        precision: storage type of the problem.
        observed: what is known of the parent (`derived.observed`); prunes what hardware bounds make pointless.
        libraries: libraries the run allows.
    """

    arch: str
    device_kind: DeviceKind
    op_family: OpFamily
    precision: Precision
    observed: Mapping[str, float] = field(default_factory=dict, hash=False)
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True)
class ShownLesson:
    """A lesson as a prompt shows it; `id` comes back in `Transition.lessons`."""

    id: str
    text: str


@dataclass(frozen=True)
class Alternative:
    """A technique that was considered and not chosen, with its sampled score."""

    technique: str
    sampled_score: float


@dataclass(frozen=True)
class Selection:
    """The technique to try next, and why.

    Attributes:
        technique: id of the technique.
        summary: what it is, one line.
        how_to: at most 8 lines for the prompt; empty for `free_form`.
        checks: what the result must be checked for.
        expected_speedup: exp of the posterior mean of credit given correct: against other attempts on the same kernel.
        p_correct: posterior mean probability that a candidate is correct.
        sampled_score: the draw that won.
        evidence_count: attempts that the posterior rests on, before weighting.
        backed_off_to: the most specific level that had attempts, or `curated_prior`.
        lessons: at most 3.
        alternatives: the other techniques that were considered, best first.
        quarantined: proposed by a model and not yet proven.
    """

    technique: str
    summary: str
    how_to: tuple[str, ...]
    checks: tuple[str, ...]
    expected_speedup: float
    p_correct: float
    sampled_score: float
    evidence_count: int
    backed_off_to: str
    lessons: tuple[ShownLesson, ...]
    alternatives: tuple[Alternative, ...]
    quarantined: bool = False
