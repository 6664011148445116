"""Which input sets a candidate must pass: seeds, distributions, sizes.

The timed size gets one set, drawn signed and uneven (`normal`), because a kernel may take another path there than at
the small size. All other sets are small, one distribution each, the hardest two first. Seeds come from one secret of
the judge, so that all candidates of a run face the same values and nobody can prepare for them; every figure of an
evaluation names the seed it was drawn from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import SystemRandom

from kernelblaster.evaluation.distributions import Distribution
from kernelblaster.evaluation.inputs import InputKey
from kernelblaster.problems.problem import Precision, Problem, Size

ORDER = (
    Distribution.NORMAL,
    Distribution.DECLARED,
    Distribution.CANCELLING,
    Distribution.LARGE,
    Distribution.NEGATIVE,
    Distribution.TINY,
    Distribution.OFFSET,
    Distribution.SPARSE,
)


def secret_seed() -> int:
    """A seed that nobody can guess, small enough for torch and JSON."""
    return SystemRandom().getrandbits(48)


@dataclass(frozen=True)
class InputPlan:
    """The input sets of one problem.

    Attributes:
        small: sets of the size that is cheap to check, in one process.
        timed: the set that is timed and profiled; it is checked, too.
    """

    small: tuple[InputKey, ...]
    timed: InputKey


def plan_inputs(problem: Problem, precision: Precision, timed: Size, sets: int, seed: int) -> InputPlan:
    """Plan `sets` input sets, at least one; the last distributions go first when there are few."""
    cheap = Size.SMALL if Size.SMALL in problem.sizes else timed
    keys = [_key(problem, precision, cheap, ORDER[n % len(ORDER)], seed, n) for n in range(sets)]
    if cheap is timed:
        return InputPlan(small=tuple(keys), timed=keys[0])
    return InputPlan(small=tuple(keys[: sets - 1]), timed=_key(problem, precision, timed, ORDER[0], seed, sets))


def _key(
    problem: Problem, precision: Precision, size: Size, distribution: Distribution, seed: int, number: int
) -> InputKey:
    """A key whose seed depends on everything but the candidate."""
    text = f"{seed}/{problem.directory.name}/{precision}/{size}/{number}"
    derived = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "little")
    draws = (distribution,) if distribution is Distribution.DECLARED else (distribution, Distribution.DECLARED)
    return InputKey(problem, precision, size, draws, derived)
