"""Additions of 16-bit floats to device memory: loops that compare and exchange a word of four bytes.

Of all lanes that try a word, one wins at a time: the first that has seen its last value. Lanes of one request fail but
for one, and so do other warps; each failure is another round of the loop. A winner knows the new value before the
others do, so that its warp wins until its lanes are through, and a word changes hands once in the time that an exchange
takes to the L2 and back. So n lanes at one word take n such times one after the other, and all who wait go round as
often, as far as the L2 has room for their failures: it takes one after the other, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.counters.launch import ATOMICS, GLOBAL_SPACES, LaunchRecord, MemoryInstruction

_BYTES = 2
_UNHURRIED = 8
"""Lanes at one word that come one after the other without waiting: requests of a launch are not issued at once."""
_MOST_WAITING = 20.0
"""Rounds of all warps together from one lane's win to the next, where each warp has one word: the L2 does no more."""
_CROWDED = 0.8
"""Power of the waiting warps that tells these rounds where a warp's lanes go to several words."""
_TURN_CLOCKS, _ROUND_CLOCKS, _SPREAD_ROUND_CLOCKS = 356.0, 45.0, 20.0
"""The least from one win at a word to the next; what a round takes the L2 where all lanes of a warp go to one word, and
to several. All read off `docs/results/ptxemu_small_launches_h200.json`, where they explain 90 launches on an H200."""


def exchange_rounds(record: LaunchRecord, access: MemoryInstruction) -> float:
    """Warp instructions of one of the loop's instructions over the whole launch.

    A warp goes round until its last lane has won. With lanes at m words each, that is m / (m + 1) of the time for which
    the hottest word is fought for, where all warps come at once, and later ones are there for as long as it takes those
    before them.
    """
    alone, lanes = float(access.rounds), record.hottest_word_lanes
    contended = max(0.0, 1 - _UNHURRIED / lanes) if lanes else 0.0
    together = min(access.requests, record.resident_warps)
    words = _words(access)
    waiting = together * (1 - together / access.requests / (words + 1)) if access.requests else 0.0
    crowded = min(waiting, _MOST_WAITING) if words < 2 else min(waiting, waiting**_CROWDED)
    return max(alone, contended * lanes * crowded)


def spinning_rounds(record: LaunchRecord, access: MemoryInstruction) -> float:
    """Warp instructions of one of the instructions of a loop that sums in shared memory, over the whole launch.

    Of the lanes of a warp at one word one wins a round. Other warps of the block come between as far as lanes share
    words: half of them, read off one case on an H200 (`shared_long_at_4`: 34.2 rounds; this says 32.5).
    """
    others = max(0.0, record.warps / record.blocks - 1)
    return access.rounds + (access.rounds - access.requests) * others / 2


def exchange_clocks(record: LaunchRecord) -> float:
    """Clocks for which lanes take turns at the hottest word, or all rounds take the L2; 0 without such atomics."""
    one_by_one = _TURN_CLOCKS * max(0, record.hottest_word_lanes - _UNHURRIED)
    rounds = sum(
        (exchange_rounds(record, one) - one.requests) * (_ROUND_CLOCKS if _words(one) < 2 else _SPREAD_ROUND_CLOCKS)
        for one in exchanging(record)
    )
    return max(one_by_one, rounds)


def exchanging(record: LaunchRecord) -> Iterator[MemoryInstruction]:
    """Atomics of a launch that are such loops."""
    return (one for one in record.accesses(GLOBAL_SPACES, ATOMICS) if one.rounds and one.bytes_per_lane == _BYTES)


def _words(access: MemoryInstruction) -> float:
    """Words that the lanes of a request go to."""
    return access.lanes / access.rounds
