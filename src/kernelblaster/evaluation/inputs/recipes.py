"""How an input set is drawn: a distribution, its scale, and what a mixture holds beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelblaster.evaluation.inputs.distributions import MASKS_OF_MIXTURES, Distribution, exponents


@dataclass(frozen=True)
class Recipe:
    """One way to draw the values of an input set.

    Attributes:
        distribution: which.
        exponent: binary scale, see `exponents`.
        accompanied: the inputs beside the leading one of a mixture are hard, too, see `companions` and `integers`.
        masks: one of `MASKS_OF_MIXTURES`, how some samples of a mixture are masked; None: none are.
    """

    distribution: Distribution
    exponent: int
    accompanied: bool = False
    masks: int | None = None

    @property
    def infinite(self) -> bool:
        """Whether some values are infinities."""
        return self.distribution is Distribution.MASKED or self.masks is not None

    @property
    def unmasked(self) -> Recipe:
        """The same without masks."""
        return replace(self, masks=None)


def recipes(
    draws: Sequence[Distribution], precision: str, layers: int, *, companions: bool, flags: bool = False
) -> list[Recipe]:
    """What to try, in order, until the problem's result tells something.

    Args:
        draws: distributions, the wanted one first.
        precision: of the run.
        layers: matrices among the weights.
        companions: whether there are inputs beside the leading one that may be hard.
        flags: whether one of them is of flags: where all are set, sums are twice as large as usual ones.
    """
    found = []
    for distribution in draws:
        scales = exponents(distribution, precision, layers)
        if companions and distribution is Distribution.MIXED:
            # Mild ones, too, before any without company: sums of 32,768 flagged values fit into fp16 at 2^0 alone.
            found += [Recipe(distribution, exponent - flags, accompanied=True) for exponent in scales]
        found += [Recipe(distribution, exponent) for exponent in scales]
    return found


def going_on(wanted: Sequence[Recipe], found: Recipe) -> list[Recipe]:
    """What is left to try at a larger size when `found` is what a smaller one ended with.

    It with its masks and milder ones, it without any, and what comes after it in `wanted`, be that milder or not.

    What tells nothing of few terms tells nothing of many, and references of large sizes are dear. All of `wanted` where
    the smaller size ended with the last resort.
    """
    if found.unmasked not in wanted[:-1]:
        return list(wanted)
    left = list(wanted[wanted.index(found.unmasked) :])
    if found.masks is None:
        return left
    milder = MASKS_OF_MIXTURES[MASKS_OF_MIXTURES.index(found.masks) :]
    return [*(replace(found, masks=masks) for masks in milder), *left]
