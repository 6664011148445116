"""Rewards of training in two stages: first correct kernels, then fast ones.

`two-stage-correct` and `two-stage-fast` are those of "Accurate and Efficient CUDA Generation through Reinforcement
Learning" (report, December 2025), kept to be compared with; `graded` tells failures apart, so that a group of wrong
kernels still teaches something. `profile` looks at what a profile shows beside the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelblaster.environment.rewards import RewardOptions, Seed, floor_share
from kernelblaster.evaluation.results import Evaluation, Verdict

FAILED = -10.0
_FASTEST = 1e9
_REACHED: dict[Verdict, float] = {
    Verdict.COMPILE_ERROR: 0.05,
    Verdict.LOAD_ERROR: 0.1,
    Verdict.NOT_EMULATABLE: 0.1,
    Verdict.BUILT: 0.1,
    Verdict.RUNTIME_ERROR: 0.1,
    Verdict.TIMEOUT: 0.1,
    Verdict.SANITIZER_ERROR: 0.1,
    Verdict.INPUT_MUTATED: 0.1,
    Verdict.WRONG_SHAPE: 0.2,
    Verdict.NONDETERMINISTIC: 0.2,
    Verdict.WRONG_VALUES: 0.2,
    Verdict.CORRECT: 0.2,
}
"""What the stages that a candidate came through are worth; a source that is no program at all still beats no source.
What damages memory counts as if it had not run."""
_SETS = 0.6
"""For the share of input sets that a kernel with wrong values passes."""


@dataclass(frozen=True)
class Graded:
    """0 without a source, up to 0.8 for a kernel that is wrong on one input set of many, 1 for a correct one."""

    options: RewardOptions
    lowest: float = 0.0
    highest: float = 1.0

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`reached`, `sets` and `correct`."""
        if evaluation is None or evaluation.verdict is Verdict.REWARD_HACK:
            return {"reached": 0.0, "sets": 0.0, "correct": 0.0}
        wrong = evaluation.verdict is Verdict.WRONG_VALUES
        return {
            "reached": _REACHED[evaluation.verdict],
            "sets": _SETS * (evaluation.passed_share or 0.0) if wrong else 0.0,
            "correct": 0.8 if evaluation.correct else 0.0,
        }


@dataclass(frozen=True)
class TwoStageCorrect:
    """1 for what is correct, else -10."""

    options: RewardOptions
    lowest: float = FAILED
    highest: float = 1.0

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`correct`."""
        return {"correct": 1.0 if evaluation is not None and evaluation.correct else FAILED}


@dataclass(frozen=True)
class TwoStageFast:
    """1 + baseline time / candidate time for what is correct, decided or not, else -10."""

    options: RewardOptions
    lowest: float = FAILED
    highest: float = 1.0 + _FASTEST

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """`correct` and `speedup`."""
        if evaluation is None or not evaluation.correct:
            return {"correct": FAILED, "speedup": 0.0}
        found = evaluation.comparison
        timed = found is not None and not math.isnan(found.speedup)
        return {"correct": 1.0, "speedup": min(max(found.speedup, 0.0), _FASTEST) if timed and found else 0.0}


_NEAR_FLOOR = 0.2
_BLEMISH = -0.1


@dataclass(frozen=True)
class ProfileAware:
    """`seed`, and for a correct kernel up to 0.2 by how near it is to the roofline floor; -0.1 for a blemish.

    A blemish is that registers spill, or that the kernel shows nothing of the technique that the prompt asked for. A
    correct kernel with one still gets more than any that is not correct.

    Attributes:
        technique_missing: what the kernel was asked to do has signs, and it gained none of them over its parent.
    """

    options: RewardOptions
    technique_missing: bool = False
    lowest: float = 0.0
    highest: float = 1.5

    def parts(self, evaluation: Evaluation | None) -> dict[str, float]:
        """Those of `seed`, `near_floor` and `blemish`."""
        parts = Seed(self.options).parts(evaluation)
        near, blemish = 0.0, 0.0
        if evaluation is not None and evaluation.correct:
            near = _NEAR_FLOOR * floor_share(evaluation)
            spills = any(one.spill_store_bytes or one.spill_load_bytes for one in evaluation.resources)
            blemish = _BLEMISH if spills or self.technique_missing else 0.0
        return {**parts, "near_floor": near, "blemish": blemish}
