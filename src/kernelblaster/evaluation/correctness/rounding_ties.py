"""Outputs of whole numbers or flags that hang on a rounding: a quantised value half way between two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

_MOST_FLIPS, _MOST_JUMPS = 1 / 4, 1 / 1000
"""Shares of an output's elements: between neighbours, as of what is quantised behind a product that was stored in 16
bits; and between others, as of indices of what has underflowed to equal values."""


@dataclass(frozen=True)
class RoundingTies:
    """What arithmetic in fp32 may make of an output that arithmetic in float64 makes something else of.

    Attributes:
        elements: of the output.
        places: those that were seen to vary, by their place in the flat output; int64, on the CPU.
        seen: in each place, what was; a row for each run, the expected output's first.
    """

    elements: int
    places: torch.Tensor
    seen: torch.Tensor

    @classmethod
    def of(cls, expected: torch.Tensor, others: Sequence[torch.Tensor]) -> Self:
        """Of the expected output and others, whose arithmetic was off; all on the CPU, of one shape and type."""
        runs = [one.reshape(-1) for one in (expected, *others)]
        varies = torch.zeros(expected.numel(), dtype=torch.bool)
        for other in runs[1:]:
            varies |= other != runs[0]
        places = varies.nonzero().reshape(-1)
        return cls(expected.numel(), places, torch.stack([one[places] for one in runs]))

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.places.nbytes + self.seen.nbytes

    @property
    def are_few(self) -> bool:
        """Whether so few elements hang on roundings that the output tells right from wrong."""
        apart = self.seen.double().amax(dim=0) - self.seen.double().amin(dim=0)
        return len(apart) <= _MOST_FLIPS * self.elements and int((apart > 1).sum()) <= _MOST_JUMPS * self.elements

    def accepts(self, got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Which elements of an output are right: equal to the expected ones, or to what was seen in their place.

        Args:
            got: of the output's shape; flags may be bytes.
            expected: the same.
        """
        right = (got == expected).reshape(-1)
        right[self.places] |= (got.reshape(-1)[self.places] == self.seen).any(dim=0)
        return right.reshape(got.shape)
