"""Torch, imported as a whole: where Ctrl-C comes in the middle, it is swallowed there, or leaves half of a library."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType


def import_torch() -> None:
    """Import torch. Raises KeyboardInterrupt afterwards, where that came meanwhile."""
    if "torch" in sys.modules or threading.current_thread() is not threading.main_thread():
        import torch

        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        import torch  # noqa: F401
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if came:
        signal.raise_signal(signal.SIGINT)
