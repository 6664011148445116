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


def is_alone(item: tuple[Path, str]) -> bool:
    """Whether no other such item may be processed meanwhile."""
    return item[1].startswith("alone")


def beside(item: tuple[Path, str]) -> list[tuple[Path, str]]:
    """Items that are processed in the same moment."""
    folder, name = item
    (folder / name).touch()
    time.sleep(0.2)
    seen = [(folder, path.name) for path in folder.iterdir() if path.name != name]
    (folder / name).unlink()
    return seen
