"""Additions of 16-bit floats to device memory: loops that compare and exchange a word of four bytes.

Of all lanes that try a word, one wins at a time: the first that has seen its last value. Lanes of one request fail but
for one, and so do other warps; each failure is another round of the loop. A winner knows the new value before the
others do, so that its warp wins until its lanes are through, and a word changes hands once in the time that an exchange
takes to the L2 and back. So n lanes at one word take n such times one after the other, however many warps wait, and all
who wait go round as often.
"""

from __future__ import annotations

from ptxemu.counters.record import LaunchRecord, MemoryInstruction

EXCHANGE_CLOCKS = 685.0
"""From one exchange of a word to the next that can win. Inferred from a single launch on an H200, which took 866 us and
451,946 warp instructions: both are what 2,048 lanes at one word come to. Not fitted to a series of launches."""
_UNHURRIED = 8
"""Lanes at one word that come one after the other without waiting: requests of a launch are not issued at once."""


def exchange_rounds(record: LaunchRecord, access: MemoryInstruction) -> float:
    """Warp instructions of one of the loop's instructions over the whole launch.

    A warp goes round until its last lane has won. With lanes at m words each, that is m / (m + 1) of the time for which
    the hottest word is fought for, where all warps come at once, and later ones are there for as long as it takes those
    before them.
    """
    alone, lanes = float(access.rounds), record.hottest_word_lanes
    contended = max(0.0, 1 - _UNHURRIED / lanes) if lanes else 0.0
    together = min(access.requests, record.resident_warps)
    words = access.lanes / access.rounds
    waiting = together * (1 - together / access.requests / (words + 1)) if access.requests else 0.0
    return max(alone, contended * lanes * waiting)
