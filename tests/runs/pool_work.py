"""What workers of tests do; importable by a process of its own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

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


def share_of(item: tuple[Path, float]) -> float:
    """What an item takes of the machine."""
    return item[1]


def beside(item: tuple[Path, float]) -> list[float]:
    """Shares of the items that are processed in the same moment."""
    folder, share = item
    own = folder / f"{share}-{os.getpid()}"
    own.touch()
    time.sleep(0.2)
    seen = [float(path.name.partition("-")[0]) for path in folder.iterdir() if path != own]
    own.unlink()
    return seen
