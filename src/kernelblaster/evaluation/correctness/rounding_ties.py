"""Outputs that hang on a rounding: a quantised value half way between two numbers, the best of what is equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

_MOST_FLIPS, _MOST_JUMPS = 1 / 4, 1 / 1000
"""Shares of an output's elements: between neighbours, as of what is quantised behind a product that was stored in 16
bits; and between others, as of indices of what has underflowed to equal values."""


class Varying:
    """Gathers what several runs make of an output of whole numbers or flags.

    Args:
        expected: on the CPU, in the stored type.
    """

    def __init__(self, expected: torch.Tensor) -> None:
        self._expected = expected.reshape(-1)
        self._others: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add(self, other: torch.Tensor) -> None:
        """One more run's output, of the same shape; any device, any type that holds it."""
        values = other.cpu().to(self._expected.dtype).reshape(-1)
        places = (values != self._expected).nonzero().reshape(-1)
        self._others.append((places, values[places]))

    @property
    def runs(self) -> int:
        """That were added."""
        return len(self._others)

    def ties(self) -> RoundingTies:
        """What was seen so far."""
        return RoundingTies(self._expected.numel(), *together(self._expected, self._others))


def together(
    expected: torch.Tensor, others: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places where any of several outputs differs, ascending, and what all have there, the expected output's first.

    Args:
        expected: flat, on the CPU.
        others: of each other output, places where it differs, ascending, and its values there.
    """
    places = torch.cat([torch.zeros(0, dtype=torch.int64), *(at for at, _ in others)]).unique()
    seen = expected[places].repeat(1 + len(others), 1)
    for row, (at, values) in zip(seen[1:], others, strict=True):
        row[torch.searchsorted(places, at)] = values
    return places, seen


@dataclass(frozen=True)
class RoundingTies:
    """What arithmetic in fp32 may make of an output that arithmetic in float64 makes something else of.

    Attributes:
        elements: of the output.
        places: those that were seen to vary, by their place in the flat output; int64, ascending, on the CPU.
        seen: in each place, what was; a row for each run, the expected output's first.
    """

    elements: int
    places: torch.Tensor
    seen: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.places.nbytes + self.seen.nbytes

    @property
    def jumps(self) -> int:
        """Elements that vary between others than neighbours: of these, any number of values may be as good."""
        return int((self.seen.double().amax(dim=0) - self.seen.double().amin(dim=0) > 1).sum())

    @property
    def are_few(self) -> bool:
        """Whether so few elements hang on roundings that the output tells right from wrong."""
        return len(self.places) <= _MOST_FLIPS * self.elements and self.jumps <= _MOST_JUMPS * self.elements

    def accepts(self, got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Which elements of an output are right: equal to the expected ones, or to what was seen in their place.

        Args:
            got: of the output's shape; flags may be bytes.
            expected: the same.
        """
        right = (got == expected).reshape(-1)
        right[self.places] |= (got.reshape(-1)[self.places] == self.seen).any(dim=0)
        return right.reshape(got.shape)
