"""Outputs of indices: where several elements are equal, an index of any of them is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import IndexSource, TensorSpec


@dataclass(frozen=True)
class IndexTies:
    """What an index output points into.

    Attributes:
        scores: the input, as it is stored, its indexed axis last; on the CPU.
        axis: place of that axis among the output's, where the output has it.
        kept: whether the output has that axis (`keepdim`, or the best k), or lacks it.
    """

    scores: torch.Tensor
    axis: int
    kept: bool

    @classmethod
    def of(cls, scores: torch.Tensor, source: IndexSource, output: TensorSpec) -> Self:
        """Ties of an output that points into `scores`. Raises ProblemError when their shapes do not fit."""
        axis = source.axis + scores.ndim if source.axis < 0 else source.axis
        others = tuple(extent for place, extent in enumerate(scores.shape) if place != axis)
        kept = len(output.shape) == scores.ndim
        outer = tuple(extent for place, extent in enumerate(output.shape) if not kept or place != axis)
        if not 0 <= axis < scores.ndim or outer != others:
            raise ProblemError(
                f"{output.name} of shape {list(output.shape)} does not index axis {source.axis} of {source.tensor}, "
                f"whose shape is {list(scores.shape)}",
                hint="correct INDICES in reference.py",
            )
        comparable = scores.float() if scores.is_floating_point() and scores.element_size() == 1 else scores
        return cls(comparable.movedim(axis, -1), axis, kept)

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.scores.nbytes

    def accepts(self, got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Which elements of an output are right: equal to the expected ones, or of an equal score.

        Of several indices of one row that are the same, the first alone is right: the best k are k elements.

        Args:
            got: indices, of the output's shape.
            expected: the same.
        """
        rows, wanted = self._rows(got), self._rows(expected)
        inside = (rows >= 0) & (rows < self.scores.shape[-1])
        found = self.scores.gather(-1, torch.where(inside, rows, 0).long())
        best = self.scores.gather(-1, wanted.long())
        right = (rows == wanted) | (inside & (found == best))
        right &= ~_repeated(rows)
        return right.movedim(-1, self.axis) if self.kept else right.squeeze(-1)

    def _rows(self, indices: torch.Tensor) -> torch.Tensor:
        return indices.movedim(self.axis, -1) if self.kept else indices.unsqueeze(-1)


def _repeated(rows: torch.Tensor) -> torch.Tensor:
    """Which elements occur earlier in their row."""
    ordered, places = rows.sort(dim=-1, stable=True)
    again = torch.zeros_like(rows, dtype=torch.bool)
    again[..., 1:] = ordered[..., 1:] == ordered[..., :-1]
    return torch.zeros_like(again).scatter(-1, places, again)
