"""Outputs of whole numbers or flags that hang on a rounding: a quantised value half way between two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch


@dataclass(frozen=True)
class RoundingTies:
    """What arithmetic in fp32 may make of an output that arithmetic in float64 makes something else of.

    Attributes:
        least: the smallest of what was seen, of the output's shape and type; on the CPU.
        most: the largest.
    """

    least: torch.Tensor
    most: torch.Tensor

    @classmethod
    def of(cls, expected: torch.Tensor, seen: Sequence[torch.Tensor]) -> Self | None:
        """Of the expected output and others, whose arithmetic was off. None where all are the same."""
        least = most = expected
        for other in seen:
            least, most = torch.minimum(least, other), torch.maximum(most, other)
        return None if torch.equal(least, most) else cls(least, most)

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.least.nbytes + self.most.nbytes

    def accepts(self, got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Which elements of an output are right: equal to the expected ones, or to what was seen in their place.

        Args:
            got: of the output's shape; flags may be bytes.
            expected: the same.
        """
        return (got == expected) | (got == self.least) | (got == self.most)
