"""What workers of tests do; importable by a process of its own."""

from __future__ import annotations

import os
import signal
import time

HANG, DIE, BREAK = -1, -2, -3


def square(number: int) -> int:
    """The square; some numbers end the process instead."""
    if number == HANG:
        time.sleep(60)
    if number == DIE:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == BREAK:
        raise SystemExit(3)
    return number * number
