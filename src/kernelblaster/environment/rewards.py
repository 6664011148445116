"""Rewards by name: a scalar from an evaluation, with its parts apart.

A scheme sees the judge's `Evaluation` and nothing that a candidate printed. Every reward is finite and within the
scheme's range; a hack gets the lowest value of the scheme, so that it never pays more than an honest failure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Protocol

from kernelblaster.environment.baselines import KnownTimes
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.against_pytorch import against_pytorch
from kernelblaster.evaluation.results import Comparison, Decision, Evaluation, Verdict
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.registry import Registry
from kernelblaster.replay.transition import FAILURE_REWARD, reward

NOT_BUILT = frozenset({Verdict.COMPILE_ERROR, Verdict.LOAD_ERROR})
"""Verdicts of a candidate that never was a program."""
SUSPICIOUS_SPEEDUP = 10.0
"""Speed-ups beyond this are to be measured again, in fresh processes, before they count."""
MEASURED_TWICE = "a speed-up that is hardly to be believed was measured twice; the lower one counts"
MILESTONE_MARGIN = 1.05


@dataclass(frozen=True)
class RewardOptions:
    """What schemes can be told.

    Attributes:
        speedup_cap: speed-up at which the bonus is full.
        grid: width to which a bonus is rounded, so that repeated measurements agree; 0 for none.
    """

    speedup_cap: float = 4.0
    grid: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.speedup_cap) and self.speedup_cap > 1):
            raise UsageError(f"no bonus ends at a speed-up of {self.speedup_cap}", hint="give one above 1")
        if not (math.isfinite(self.grid) and 0 <= self.grid <= 0.5):
            raise UsageError(f"{self.grid} is no grid for rewards", hint="give 0 to 0.5")

    def rounded(self, bonus: float) -> float:
        """A bonus on the grid."""
        return bonus if self.grid == 0 else round(bonus / self.grid) * self.grid


class RewardScheme(Protocol):
    """Turns an evaluation into parts of a reward, whose sum is the reward."""

    @property
    def lowest(self) -> float:
        """No reward is less; a hack gets it."""
        ...

    @property
    def highest(self) -> float:
        """No reward is more; whoever gets it is done."""
        ...

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """Parts for an honest candidate; None where there was nothing to judge."""
        ...


@dataclass(frozen=True)
class Reward:
    """A rewarded submission.

    Attributes:
        value: the reward, finite.
        parts: their sum is `value`, except where a hack is punished.
        hack: the judge found an attempt to fool it.
        suspicious: a speed-up beyond `SUSPICIOUS_SPEEDUP`.
        device_limit: the device, not the candidate, set the limit; a trainer may drop the sample.
    """

    value: float
    parts: dict[str, float] = field(hash=False)
    hack: bool = False
    suspicious: bool = False
    device_limit: bool = False


def rewarded(scheme: RewardScheme, evaluation: Evaluation | None) -> Reward:
    """The reward of a submission; `evaluation` is None where it held no source."""
    if evaluation is not None and evaluation.verdict is Verdict.REWARD_HACK:
        return Reward(scheme.lowest, dict.fromkeys(scheme.parts(None), 0.0), hack=True)
    parts = scheme.parts(evaluation)
    return Reward(
        value=min(scheme.highest, max(scheme.lowest, math.fsum(parts.values()))),
        parts=parts,
        suspicious=speedup_of(evaluation) > SUSPICIOUS_SPEEDUP,
        device_limit=_device_limit(evaluation),
    )


def speedup_of(evaluation: Evaluation | None) -> float:
    """Speed-up of a correct candidate that is decided faster; 1 for any other, and never beyond a float's range."""
    found = _compared(evaluation)
    if found is None or found.decision is not Decision.FASTER or math.isnan(found.speedup):
        return 1.0
    return min(max(found.speedup, 1.0), 1e9)


def slower_of(found: Evaluation, second: Evaluation) -> Evaluation:
    """What is believed of a source that was evaluated twice: the lower speed-up, and a failure of either time."""
    if speedup_of(second) >= speedup_of(found):
        return found
    if not second.correct:
        return second
    slower = {"timing": second.timing, "comparison": second.comparison}
    return found.model_copy(update={**slower, "warnings": [*found.warnings, MEASURED_TWICE]})


def floor_share(evaluation: Evaluation) -> float:
    """Roofline floor over time of the call, 0 to 1; 0 where it was not timed."""
    share = None if evaluation.timing is None else evaluation.timing.floor_fraction
    return 0.0 if share is None or not math.isfinite(share) else min(1.0, max(0.0, share))


def _device_limit(evaluation: Evaluation | None) -> bool:
    if evaluation is None or evaluation.verdict is Verdict.BUILT:
        return False
    return evaluation.verdict is Verdict.NOT_EMULATABLE or not evaluation.outputs_judged


def _compared(evaluation: Evaluation | None) -> Comparison | None:
    return evaluation.comparison if evaluation is not None and evaluation.correct else None


def _is_faster(evaluation: Evaluation | None) -> bool:
    found = _compared(evaluation)
    return found is not None and found.decision is Decision.FASTER


@dataclass(frozen=True)
class Seed:
    """0.1 for a build, 0.3 for being correct, 0.3 for being faster, up to 0.6 by the logarithm of the speed-up."""

    options: RewardOptions
    lowest: float = 0.0
    highest: float = 1.3

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`compiled`, `correct`, `faster`, `bonus`."""
        faster = _is_faster(evaluation)
        octaves = math.log2(speedup_of(evaluation)) / math.log2(self.options.speedup_cap)
        return {
            "compiled": 0.1 if evaluation is not None and evaluation.verdict not in NOT_BUILT else 0.0,
            "correct": 0.3 if evaluation is not None and evaluation.correct else 0.0,
            "faster": 0.3 if faster else 0.0,
            "bonus": min(0.6, self.options.rounded(min(0.6, 0.6 * octaves))) if faster else 0.0,
        }


@dataclass(frozen=True)
class Log:
    """The natural logarithm of the speed-up, as searches remember it; a fixed negative per kind of failure."""

    options: RewardOptions
    lowest: float = -1.0
    highest: float = math.log(100.0)

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`failure` or `log_speedup`, the other 0."""
        if evaluation is None:
            return {"failure": FAILURE_REWARD[Verdict.COMPILE_ERROR], "log_speedup": 0.0}
        found = evaluation.comparison
        if evaluation.correct and found is not None and not 0 < found.speedup < math.inf:
            return {"failure": 0.0, "log_speedup": 0.0}  # a ratio that no clock gives says nothing
        value = reward(evaluation.verdict, found)
        if not evaluation.correct:
            return {"failure": value, "log_speedup": 0.0}
        return {"failure": 0.0, "log_speedup": min(self.highest, max(self.lowest, self.options.rounded(value)))}


ROOFLINE_SHARE = 0.5
"""That `log-roofline` gives to a kernel at the roofline floor: as much as a speed-up of 1.65."""


@dataclass(frozen=True)
class LogRoofline:
    """`log`, and for a correct kernel up to 0.5 more by how near its time is to the roofline floor."""

    options: RewardOptions
    lowest: float = Log.lowest
    highest: float = Log.highest + ROOFLINE_SHARE

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`failure`, `log_speedup`, `roofline`."""
        share = floor_share(evaluation) if evaluation is not None and evaluation.correct else 0.0
        return {**Log(self.options).parts(evaluation), "roofline": ROOFLINE_SHARE * share}


REACH_OCTAVES, REACH_BEYOND = 6, 2
"""Of `reach`: below 1/64 of the attainable speed nothing is gained, above 4 times it nothing more."""
REACH_PER_OCTAVE = 0.15
REACH_MOST = REACH_PER_OCTAVE * (REACH_OCTAVES + REACH_BEYOND)


@dataclass(frozen=True)
class Reach:
    """0.1 for a build, 0.3 for being correct, 0.15 for each octave by which it is nearer to the attainable time.

    The attainable time gets 0.9 of these, and who halves it 0.15 more. No baseline counts: a kernel that is merely
    better than a plain start gets little.
    """

    options: RewardOptions
    lowest: float = 0.0
    highest: float = 0.4 + REACH_MOST

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`compiled`, `correct`, `reach`."""
        return {
            "compiled": 0.1 if evaluation is not None and evaluation.verdict not in NOT_BUILT else 0.0,
            "correct": 0.3 if evaluation is not None and evaluation.correct else 0.0,
            "reach": min(REACH_MOST, self.options.rounded(REACH_PER_OCTAVE * _octaves_reached(evaluation))),
        }


def _octaves_reached(evaluation: Evaluation | None) -> float:
    """0 to 8; 0 where a correct candidate was not timed."""
    timing = evaluation.timing if evaluation is not None and evaluation.correct else None
    if timing is None or timing.attainable_us is None or not 0 < timing.median_us < math.inf:
        return 0.0
    octaves = REACH_OCTAVES + math.log2(timing.attainable_us / timing.median_us)
    return min(float(REACH_OCTAVES + REACH_BEYOND), max(0.0, octaves))


@dataclass(frozen=True)
class Milestones:
    """-1 for what is not correct, 1 for what is, 2 for what is faster than eager PyTorch, 3 than its compiler, too.

    By 5 % or more each. Where PyTorch has no time, on an emulated GPU for one, 2 is for what is faster than the
    episode's baseline, and there is no 3.

    Attributes:
        pytorch: its times on the problem.
    """

    options: RewardOptions
    pytorch: KnownTimes = field(default_factory=dict, hash=False)
    lowest: float = -1.0

    @property
    def highest(self) -> float:
        """3 where both of PyTorch's times are known, else 2."""
        return 3.0 if self.pytorch.keys() >= _MILESTONES else 2.0

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`correct`, `faster` and `faster_than_compiled`."""
        correct = evaluation is not None and evaluation.correct
        first, second = _passed_by_margin(evaluation), False
        if evaluation is not None and self.pytorch.keys() >= _MILESTONES:
            first, second = (
                _passed_by_margin(against_pytorch(evaluation, self.pytorch[mode]))
                for mode in (TorchMode.EAGER, TorchMode.COMPILE)
            )
        return {
            "correct": 1.0 if correct else -1.0,
            "faster": 1.0 if first else 0.0,
            "faster_than_compiled": 1.0 if first and second else 0.0,
        }


_MILESTONES = {TorchMode.EAGER, TorchMode.COMPILE}


def _passed_by_margin(evaluation: Evaluation | None) -> bool:
    return _is_faster(evaluation) and speedup_of(evaluation) >= MILESTONE_MARGIN


def for_problem(scheme: RewardScheme, pytorch: KnownTimes) -> RewardScheme:
    """A scheme for the submissions to one problem, on which PyTorch takes so long."""
    return replace(scheme, pytorch=pytorch) if isinstance(scheme, Milestones) else scheme


@dataclass(frozen=True)
class Binary:
    """1 for what is correct, else 0; speed does not count."""

    options: RewardOptions
    lowest: float = 0.0
    highest: float = 1.0

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`correct`."""
        return {"correct": 1.0 if evaluation is not None and evaluation.correct else 0.0}


class SchemeMaker(Protocol):
    """Makes a scheme from options."""

    def __call__(self, options: RewardOptions, /) -> RewardScheme:
        """The scheme."""
        ...


REWARDS: Registry[SchemeMaker] = Registry("reward scheme", SchemeMaker)
REWARDS.register("seed", Seed, "0 to 1.3: compiles 0.1, correct 0.3, faster 0.3, log2 of the speed-up up to 0.6")
REWARDS.register("log", Log, "natural logarithm of the speed-up; failures -0.1 to -1")
REWARDS.register("log-roofline", LogRoofline, "log, and up to 0.5 by how near the time is to the roofline floor")
REWARDS.register(
    "milestones", Milestones, "-1 wrong, 1 correct, 2 faster than eager PyTorch by 5 %, 3 than compiled, too"
)
REWARDS.register("reach", Reach, "0 to 1.6: compiles 0.1, correct 0.3, 0.15 per octave nearer to the attainable time")
REWARDS.register("binary", Binary, "1 correct, else 0")
_STAGED = "kernelblaster.environment.staged_rewards"
REWARDS.register("graded", f"{_STAGED}:Graded", "0 to 1: how far a kernel came, by the share of input sets it passes")
REWARDS.register("two-stage-correct", f"{_STAGED}:TwoStageCorrect", "1 correct, else -10")
REWARDS.register("profile", f"{_STAGED}:ProfileAware", "0 to 1.5: seed, nearness to the floor, less for spills")
REWARDS.register("two-stage-fast", f"{_STAGED}:TwoStageFast", "1 + speed-up if correct, else -10; not bounded by a cap")
