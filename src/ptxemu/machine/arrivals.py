"""When what a warp waits for comes: loads from one of three levels of memory, of which one knows how likely each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class ArrivalTime:
    """A time that may be one of three.

    Attributes:
        near, middle, far: the times, each no earlier than the one before.
        beyond: probability that it is later than the first.
        farthest: probability that it is the last.
    """

    near: float
    middle: float
    far: float
    beyond: float = 0.0
    farthest: float = 0.0

    @classmethod
    def at(cls, time: float) -> ArrivalTime:
        """A time that is known."""
        return cls(time, time, time)

    @classmethod
    def last(cls, several: Sequence[ArrivalTime]) -> ArrivalTime:
        """The last of several that are independent: none is later when each of them is not."""
        if len(several) == 1:
            return several[0]
        near = max(one.near for one in several)
        middle = max([near, *(one.middle for one in several if one.beyond)])
        far = max([middle, *(one.far for one in several if one.farthest)])
        beyond, farthest = (
            1 - prod(1 - share for share in shares)
            for shares in ([one.beyond for one in several], [one.farthest for one in several])
        )
        return cls(near, middle, far, beyond, farthest)

    def after(self, clocks: float) -> ArrivalTime:
        """The same, so many clocks later."""
        return ArrivalTime(self.near + clocks, self.middle + clocks, self.far + clocks, self.beyond, self.farthest)

    def expected(self, now: float) -> float:
        """The mean time at which a warp goes on that begins to wait now."""
        near, middle, far = max(now, self.near), max(now, self.middle), max(now, self.far)
        return near + self.beyond * (middle - near) + self.farthest * (far - middle)
