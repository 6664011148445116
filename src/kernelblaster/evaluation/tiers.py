"""How far a candidate is judged: each tier does what the one before does, and more."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """How far a correct candidate goes; a wrong one is refused by the same stage in all of them."""

    COMPILE = "compile"
    """Built and not run; what builds is `Verdict.BUILT`, whatever it computes."""
    CORRECT = "correct"
    """Built and verified, not timed: nothing says that it computes in timed calls, too."""
    QUICK = "quick"
    """Timed against the baseline for `QUICK_SECONDS`, with the checks of timed calls: a wider interval, no counters."""
    FULL = "full"
    """Timed as long as configured, and profiled where that is asked for."""

    @property
    def times(self) -> bool:
        """Whether a correct candidate is timed against a baseline."""
        return self in (Tier.QUICK, Tier.FULL)


QUICK_SECONDS = 0.5
"""Wall seconds of timing at the tier `quick`."""
