"""Of a large output, which elements are judged in timed calls: whole rows at random places that nobody can foresee.

A call that verifies is judged whole; a reference for each judged timed call would take several times its memory. A
kernel that leaves out a share p of a timed call's work escapes with probability (1 - p)^256, and gains p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Self

import torch

COUNT = 256
BYTES = 256 << 20
"""Of a reference that is kept in pieces; what that is of a reference of 6 GiB is 4 %."""


@dataclass(frozen=True)
class Pieces:
    """Elements of an output, by their places in it.

    Attributes:
        spans: first and behind last element of each, ascending and apart; whole rows.
    """

    spans: tuple[tuple[int, int], ...]

    @classmethod
    def choose(cls, elements: int, row: int, kept: int, secret: str) -> Self:
        """Choose pieces of at least a row each, `COUNT` where so many rows are no more than `kept`.

        Args:
            elements: of the output.
            row: elements that must stay together; a divisor of `elements`.
            kept: elements of all pieces together, about.
            secret: decides the places.
        """
        rows = max(elements // row, 1)
        each = max(kept // (COUNT * row), 1)
        places = -(-rows // each)
        chosen = sorted(Random(secret).sample(range(places), min(COUNT, places, max(kept // (each * row), 1))))
        return cls(tuple((place * each * row, min((place + 1) * each * row, elements)) for place in chosen))

    @property
    def elements(self) -> int:
        """In all of them."""
        return sum(stop - start for start, stop in self.spans)

    def taken(self, values: torch.Tensor) -> torch.Tensor:
        """These elements of a whole output, one piece behind the other."""
        flat = values.reshape(-1)
        return torch.cat([flat[start:stop] for start, stop in self.spans])

    def within(self, chunk: int) -> Iterator[tuple[int, int, int]]:
        """First and behind last element of stretches of at most `chunk` elements, and the first's place in `taken`.

        `chunk` is a multiple of the row.
        """
        behind = 0
        for start, stop in self.spans:
            for first in range(start, stop, chunk):
                yield first, min(first + chunk, stop), behind + first - start
            behind += stop - start
