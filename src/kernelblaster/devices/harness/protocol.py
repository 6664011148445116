"""What the judge asks of a harness and what that answers; `include/kernelblaster/protocol.hpp` has the fields."""

from __future__ import annotations

from enum import IntEnum


class HarnessRequest(IntEnum):
    """Kinds of packets from the judge."""

    JOB = 1
    TENSORS = 2
    LOAD = 3
    CALL = 4
    FETCH = 5
    TIME = 6
    RELOAD = 7
    PROFILE = 8
    WARM_UP = 9
    BATCH = 10
    QUIT = 11


class HarnessReply(IntEnum):
    """Kinds of packets from the harness."""

    READY = 1
    LOADED = 2
    CALLED = 3
    TIMED = 4
    RELOADED = 5
    PROFILED = 6
    WARMED_UP = 7
    BATCHED = 8
    JUDGED = 9
    ERROR = 10
