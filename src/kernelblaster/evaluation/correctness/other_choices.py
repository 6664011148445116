"""Floating-point outputs behind a choice that is luck: which values each choice gives, as where a layer routes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from kernelblaster.evaluation.correctness.pieces import Pieces
from kernelblaster.evaluation.correctness.rounding_ties import together

_EXACT = 2.0**-30
"""Of values and their root mean square: runs in float64 that choose the same differ by less."""
_FAR = 1 / 4
"""Of a tolerance: what another choice moves by less is judged as if it were certain. A kernel that chose otherwise has
three quarters of the tolerance there, and a rectifier, which moves by a rounding, gains nothing."""
_MOST = 1 / 16
"""Of an output's elements: each other value is right to the last digit, and a wrong kernel gives none."""


class VaryingValues:
    """Gathers what runs that choose otherwise make of a floating-point output.

    Args:
        expected: float64 or float32, any device.
    """

    def __init__(self, expected: torch.Tensor) -> None:
        self._expected = expected.reshape(-1).double()
        finite = torch.where(self._expected.isfinite(), self._expected, 0.0)
        self._negligible = _EXACT * (finite.abs() + finite.square().mean().sqrt())
        self._others: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add(self, other: torch.Tensor) -> None:
        """One more run's output, of the same shape; what is infinite, or no number, is not gathered."""
        values = other.reshape(-1).to(self._expected)
        error = (values - self._expected).abs()
        places = ((error > self._negligible) & error.isfinite()).nonzero().reshape(-1)
        self._others.append((places.cpu(), values[places].cpu()))

    def choices(self) -> OtherChoices:
        """What was seen so far."""
        return OtherChoices(self._expected.numel(), *together(self._expected.cpu(), self._others))


@dataclass(frozen=True)
class OtherChoices:
    """What choices among values that are equal up to rounding may make of a floating-point output.

    Attributes:
        elements: of the output.
        places: those that vary, by their place in the flat output, or in its pieces; int64, ascending, on the CPU.
        seen: in each place, what was, on the CPU; a row for each run, the expected output's first.
    """

    elements: int
    places: torch.Tensor
    seen: torch.Tensor

    @property
    def nbytes(self) -> int:
        """Memory it takes."""
        return self.places.nbytes + self.seen.nbytes

    @property
    def are_few(self) -> bool:
        """Whether so few elements hang on a choice that the output tells right from wrong."""
        return len(self.places) <= _MOST * self.elements

    @property
    def have_several(self) -> bool:
        """Whether an element has more than two values: choices among more than two may not all have been seen."""
        low, high = self.seen.amin(dim=0), self.seen.amax(dim=0)
        apart = _EXACT * torch.maximum(low.abs(), high.abs())
        return bool(((self.seen > low + apart) & (self.seen < high - apart)).any())

    def beyond(self, tolerances: torch.Tensor) -> OtherChoices:
        """Those that move by more than tolerances, flat and one for each element of the output, have for roundings."""
        moved = (self.seen - self.seen[0]).abs().amax(dim=0)
        far = moved > _FAR * tolerances.cpu()[self.places]
        return replace(self, places=self.places[far], seen=self.seen[:, far])

    def taken(self, pieces: Pieces) -> OtherChoices:
        """Those in pieces, by their place in what `pieces.taken` returns."""
        first, behind = (torch.tensor(edges) for edges in zip(*pieces.spans, strict=True))
        before = (behind - first).cumsum(0) - (behind - first)
        piece = (torch.searchsorted(first, self.places, right=True) - 1).clamp(min=0)
        inside = (self.places >= first[piece]) & (self.places < behind[piece])
        places = (self.places - first[piece] + before[piece])[inside]
        return replace(self, places=places, seen=self.seen[:, inside])

    def nearest(
        self, got: torch.Tensor, expected: torch.Tensor, start: int = 0, tolerances: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What is to be expected of an output's elements: of the values that choices give, the nearest to what is got.

        Args:
            got: elements from place `start` on; flat, NaN is near to nothing.
            expected: what is expected of them without another choice; flat.
            start: place of the first.
            tolerances: of each; values that are not beyond its share of them are no other choice's. None: all are.
        """
        first, last = torch.searchsorted(self.places, torch.tensor([start, start + expected.numel()])).tolist()
        if first == last:
            return expected
        device = expected.device
        places = self.places[first:last].to(device) - start
        seen, own = self.seen[:, first:last].to(device), expected[places].double()
        found = got[places].to(device).double()
        far = (seen - own).abs() > (0.0 if tolerances is None else _FAR * tolerances[places])
        nearest = torch.where(far, (found - seen).abs(), torch.inf).min(dim=0)
        closer = nearest.values < (found - own).abs()
        other = seen.gather(0, nearest.indices[None])[0]
        return expected.index_put((places,), torch.where(closer, other, own).to(expected.dtype))
