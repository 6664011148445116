"""What the rollouts of one search tell each other while they run: what was tried on a kernel, and idle replies.

Kept in memory alone. Nothing that a search decides to keep depends on it: a start after a kill begins with none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelblaster.agent.state import Tried

IDLE_REPLIES = 8
"""Replies in a row, over all rollouts, without a kernel that is new to the search, after which nobody asks again."""
TOLD = 6
"""Latest attempts of others that a prompt tells of."""


@dataclass(frozen=True)
class _Note:
    rollout: str
    tried: Tried


@dataclass
class SharedNotes:
    """Shared by the rollouts of one search, all in one event loop."""

    _idle: int = 0
    _tried: dict[str, list[_Note]] = field(default_factory=dict)
    """Parent -> steps that ended on it."""

    @property
    def repeating(self) -> bool:
        """Whether the model only repeats itself, or says nothing of use."""
        return self._idle >= IDLE_REPLIES

    def replied(self, *, new: bool) -> None:
        """A reply came; `new` when it held a source that this search had not seen."""
        self._idle = 0 if new else self._idle + 1

    def ended(self, parent: str, rollout: str, tried: Tried) -> None:
        """A rollout's step on a kernel ended."""
        self._tried.setdefault(parent, []).append(_Note(rollout, tried))

    def of_others(self, parent: str, rollout: str) -> list[Tried]:
        """What other rollouts have tried on a kernel lately, oldest first, each outcome of a technique once."""
        others = [note.tried for note in self._tried.get(parent, []) if note.rollout != rollout]
        latest = {(tried.technique, tried.outcome): tried for tried in others}
        return list(latest.values())[-TOLD:]
