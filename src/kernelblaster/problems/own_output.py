"""Standard output is a command's answer: what a problem's own Python code prints goes to standard error instead.

`contextlib.redirect_stdout` would take it from all threads, among them those that write a command's answer meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _ByThread:
    """A stream that is standard error to threads that run a problem's code, and another stream to all others."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if getattr(_state, "depth", 0) else self.usual, name)


_state = threading.local()
_lock = threading.Lock()
_running = 0
_placed: _ByThread | None = None


@contextmanager
def apart_from_answers() -> Iterator[None]:
    """What this thread prints in the body goes to standard error."""
    _enter()
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1
        _leave()


def _enter() -> None:
    global _running, _placed
    with _lock:
        if _running == 0 and sys.stdout is not None:
            _placed = _ByThread(sys.stdout)
            sys.stdout = _placed
        _running += 1


def _leave() -> None:
    global _running, _placed
    with _lock:
        _running -= 1
        if _running == 0 and _placed is not None:
            # A live view that began or ended meanwhile has put a stream there that is not ours to replace.
            if sys.stdout is _placed:
                sys.stdout = _placed.usual
            _placed = None
