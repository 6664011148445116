"""The archive of one problem: every kernel that was faster than its parent, every attempt on it, and who is next.

Replies are handed out generation by generation; when all of one are judged, the next is handed out, so that the same
replies lead to the same search whatever comes first. Reply i belongs to island i mod N:

- an island that has nothing faster than the start spends its replies on the start: best of n;
- then they go to its two fastest kernels, each to the one with the larger potential;
- once in a round, as soon as two islands have a kernel each, a reply joins the fastest of both: crossover;
- from the second round on the fastest kernel of all is on every island;
- a kernel that was recalled before the first round is an attempt of round 0, and on every island.

    potential = ln(time / attainable time) * (ln(gain that made it) + sum of ln(gains made of it)) / (1 + its replies)

A kernel on which replies bring nothing loses its turn as their number grows; one at its attainable time has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kernelblaster.agent.outcome import Incumbent
from kernelblaster.agent.state import Allocation, Tried

REFINED = 2
"""Kernels of an island that replies go to."""


class ArchivedAttempt(BaseModel):
    """One finished step: what was tried on which kernel, and what came of it."""

    model_config = ConfigDict(frozen=True)

    format: Literal["kernelblaster-attempt-1"] = "kernelblaster-attempt-1"
    slot: str
    round: int
    generation: int
    index: int
    parent: str
    """SHA-256 of the kernel that was to be improved."""
    tried: Tried
    candidate: str | None = None
    verdict: str | None = None
    made: Incumbent | None = None
    """The candidate with its gain over the start, where it was faster than its parent."""
    headroom: float | None = None
    """Time of `made` over the attainable time; None where that is not known."""

    @property
    def log_gain(self) -> float:
        """ln of the speed-up over the parent where it was accepted, else 0."""
        return math.log(self.tried.speedup) if self.made is not None and self.tried.speedup else 0.0


@dataclass
class _Member:
    """A kernel of the archive, and the replies that it was given."""

    incumbent: Incumbent
    log_gain: float
    headroom: float | None
    islands: set[int]
    order: int
    """Place among the kernels that were made."""
    replies: int = 0
    gained: float = 0.0

    @property
    def potential(self) -> float:
        left = 1.0 if self.headroom is None else max(0.0, math.log(self.headroom))
        return left * (self.log_gain + self.gained) / (1 + self.replies)

    @property
    def rank(self) -> tuple[float, int]:
        """By gain, then the earlier one: content would make equal kernels a matter of chance."""
        return self.incumbent.gain, -self.order


@dataclass
class Archive:
    """What a problem's search knows before a generation.

    Attributes:
        start: the kernel that the search began with.
        headroom: of the start.
        attempts: of all generations before.
        islands: how many there are.
    """

    start: Incumbent
    headroom: float | None
    attempts: Sequence[ArchivedAttempt]
    islands: int
    _members: dict[str, _Member] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        everywhere = set(range(self.islands))
        self._members[self.start.sha256] = _Member(self.start, 0.0, self.headroom, everywhere, 0)
        for attempt in self.attempts:
            if attempt.made is not None:
                made = _Member(attempt.made, attempt.log_gain, attempt.headroom, set(), len(self._members))
                home = {attempt.index % self.islands} if attempt.round else everywhere
                self._members.setdefault(attempt.made.sha256, made).islands.update(home)
        for attempt in self.attempts:
            member = self._members.get(attempt.parent)
            if member is not None:
                member.replies += 1
                member.gained += attempt.log_gain

    def on(self, parent: str) -> list[ArchivedAttempt]:
        """Attempts on a kernel, the earliest first."""
        return [attempt for attempt in self.attempts if attempt.parent == parent]

    def way_to(self, kernel: str) -> list[ArchivedAttempt]:
        """Attempts that led from the start to a kernel, in order."""
        made = {attempt.made.sha256: attempt for attempt in reversed(self.attempts) if attempt.made is not None}
        way: list[ArchivedAttempt] = []
        while kernel in made:
            way.append(made.pop(kernel))
            kernel = way[-1].parent
        return way[::-1]

    @property
    def least_headroom(self) -> float | None:
        """Of the kernels that were made; None where there are none, or it is not known."""
        return min((attempt.headroom for attempt in self.attempts if attempt.headroom is not None), default=None)

    def idle_generations(self, round: int) -> int:
        """Latest generations of a round in a row in which nothing was faster than its parent."""
        own = [attempt for attempt in self.attempts if attempt.round == round]
        fruitful = max((attempt.generation for attempt in own if attempt.made is not None), default=0)
        return max((attempt.generation for attempt in own), default=0) - fruitful

    def hand_out(self, round: int, replies: int) -> list[Allocation]:
        """Who improves what in the next generation of a round."""
        if round > 1:
            max(self._members.values(), key=lambda member: member.rank).islands.update(range(self.islands))
        crossed = any(attempt.tried.crossover for attempt in self.attempts if attempt.round == round)
        pair = None if crossed else self._pair()
        handed = [self._refine(index) for index in range(replies - (pair is not None))]
        if pair is not None:
            best, other = pair
            handed.append(Allocation(index=replies - 1, parent=best.incumbent, donor=other.incumbent.sha256))
        return handed

    def _refine(self, index: int) -> Allocation:
        own = [member for member in self._members.values() if index % self.islands in member.islands]
        made = [member for member in own if member.incumbent.sha256 != self.start.sha256] or own
        best = sorted(made, key=lambda member: member.rank, reverse=True)[:REFINED]
        chosen = max(best, key=lambda member: (member.potential, member.rank))
        potential = chosen.potential
        chosen.replies += 1
        return Allocation(index=index, parent=chosen.incumbent, potential=potential)

    def _pair(self) -> tuple[_Member, _Member] | None:
        """The fastest kernel and the fastest of another island, neither of them the start."""
        made = [member for sha256, member in self._members.items() if sha256 != self.start.sha256]
        made.sort(key=lambda member: member.rank, reverse=True)
        others = [member for member in made[1:] if not member.islands & made[0].islands]
        return (made[0], others[0]) if others else None
