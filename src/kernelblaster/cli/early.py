"""What holds before the command line is imported, which takes longer than many people need to change their mind."""

from __future__ import annotations

import os
import signal
from types import FrameType

from kernelblaster.errors import ExitCode


def leave_when_interrupted() -> None:
    """Have an interruption end the process at once, unless interruptions are ignored: there is nothing to keep yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_when_interrupted() -> None:
    """Have an interruption be an exception again, for whoever handles it from now on."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(ExitCode.INTERRUPTED)
