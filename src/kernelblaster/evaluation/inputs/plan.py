"""Which input sets a candidate must pass: seeds, distributions, sizes.

The timed size gets one set, most distributions in one tensor (`mixed`), because a kernel may take another path there
than at the small size; so does the small size where that is timed. It is the only one where one set is asked for. All
other sets are small, one distribution each, the hardest two first, and `UNSEEN` (`LEVELLED` of a normalisation) are at
extents that no prompt shows, `DRAWN` with small parameters that are drawn there. Seeds come from one secret of the
judge, so that all candidates of a run face the same values and nobody can prepare for them; every figure of an
evaluation names the seed it was drawn from.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from random import SystemRandom

from kernelblaster.evaluation.inputs.distributions import Distribution, attempts
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.tags import Tag

ORDER = (
    Distribution.NORMAL,
    Distribution.DECLARED,
    Distribution.CANCELLING,
    Distribution.LARGE,
    Distribution.NEGATIVE,
    Distribution.TINY,
    Distribution.OFFSET,
    Distribution.SPARSE,
    Distribution.MASKED,
)
UNSEEN = (Distribution.NORMAL, Distribution.COARSE)
"""At extents that no prompt shows: signed and uneven values, and those that overflow unless the whole row's maximum is
subtracted."""
LEVELLED = (*UNSEEN, Distribution.LEVELS)
"""The same where a normalisation is all that is computed."""
DRAWN = (Distribution.NORMAL, Distribution.DECLARED)
"""With parameters that are drawn, of which some make most sums cancel: values that tell of these parameters alone."""


def secret_seed() -> int:
    """A seed that nobody can guess, small enough for torch and JSON."""
    return SystemRandom().getrandbits(48)


@dataclass(frozen=True)
class InputPlan:
    """The input sets of one problem.

    Attributes:
        small: sets of the size that is cheap to check, in one process.
        timed: the set that is timed and profiled; it is checked, too, unless it is not to be judged.
        unseen: sets at extents or parameters that no prompt shows, those of one process each; none without such.
    """

    small: tuple[InputKey, ...]
    timed: InputKey
    unseen: tuple[tuple[InputKey, ...], ...] = ()

    @property
    def judged_sets(self) -> int:
        """Sets that a candidate must pass."""
        timed_alone = self.timed.judged and self.timed not in self.small
        return len(self.verified) + timed_alone

    @property
    def verified(self) -> tuple[InputKey, ...]:
        """All sets but the timed one."""
        return (*self.small, *(key for keys in self.unseen for key in keys))


def plan_inputs(
    problem: Problem,
    precision: Precision,
    timed: str,
    sets: int,
    seed: int,
    other: Problem | None = None,
    drawn: Problem | None = None,
    *,
    judge_timed: bool = True,
) -> InputPlan:
    """Plan `sets` input sets, at least one; the last distributions go first when there are few.

    Beside them `UNSEEN` or `LEVELLED` of `other` and `DRAWN` of `drawn`, the problem at extents and with parameters
    that no prompt shows. Without `judge_timed` outputs at a timed size that is not the cheap one are not compared.
    """
    cheap = problem.cheap_workload
    keys = [_key(problem, precision, cheap, ORDER[n % len(ORDER)], seed, n) for n in range(sets)]
    undeclared = LEVELLED if problem.tags == (Tag.NORM,) else UNSEEN
    hidden = ((other, undeclared, sets + 1), (drawn, DRAWN, sets + 1 + len(undeclared)))
    unseen = tuple(
        tuple(_key(one, precision, cheap, distribution, seed, n) for n, distribution in enumerate(distributions, first))
        for one, distributions, first in hidden
        if one is not None
    )
    if cheap != timed and not judge_timed:
        plain = _key(problem, precision, timed, ORDER[0], seed, sets)
        return InputPlan(small=tuple(keys), timed=replace(plain, judged=False), unseen=unseen)
    chosen = _key(problem, precision, timed, Distribution.MIXED, seed, sets)
    plain_sets = tuple(keys[: sets - 1])
    return InputPlan(small=(*plain_sets, chosen) if cheap == timed else plain_sets, timed=chosen, unseen=unseen)


def _key(
    problem: Problem, precision: Precision, workload: str, distribution: Distribution, seed: int, number: int
) -> InputKey:
    """A key whose seed depends on everything but the candidate."""
    text = f"{seed}/{problem.directory.name}/{precision}/{workload}/{number}"
    derived = int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "little")
    return InputKey(problem, precision, workload, attempts(distribution), derived)
