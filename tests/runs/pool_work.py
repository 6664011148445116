"""What workers of tests do; importable by a process of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
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


def fit(items: Sequence[tuple[Path, float]]) -> bool:
    """Whether the machine suffices for these; one that takes nothing always has room."""
    return items[-1][1] == 0 or sum(share for _, share in items) <= 1


def beside(item: tuple[Path, float]) -> list[float]:
    """Shares of the items that are processed in the same moment."""
    folder, share = item
    own = folder / f"{share}-{os.getpid()}"
    own.touch()
    time.sleep(0.2)
    seen = [float(path.name.partition("-")[0]) for path in folder.iterdir() if path != own]
    own.unlink()
    return seen


def by_whom(item: tuple[str, int]) -> tuple[int, str]:
    """Who processes an item, and on how many threads it may compute."""
    time.sleep(0.05)
    return os.getpid(), os.environ["OMP_NUM_THREADS"]
