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
    PREPARE_BATCH = 10
    BATCH = 11
    SELECT = 12
    QUIT = 13
    ADD = 14
    CHOOSE = 15
    KEY = 16


class HarnessReply(IntEnum):
    """Kinds of packets from the harness."""

    READY = 1
    LOADED = 2
    CALLED = 3
    TIMED = 4
    RELOADED = 5
    PROFILED = 6
    WARMED_UP = 7
    BATCH_PREPARED = 8
    ISSUED = 9
    BATCHED = 10
    SELECTED = 11
    JUDGED = 12
    ERROR = 13
    ADDED = 14
    CHOSEN = 15
    FETCHED = 16
