"""Says what is being done while a person waits: a spinner on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from kernelblaster.cli import terminal

FIRST_WORD_S = 2.0
"""Silence after which a log is told what goes on."""
REPEAT_S = 30.0
"""Silence after which it is told again."""
_TICK_S = 0.25


class Heartbeat:
    """Writes the current stage into a log when nothing else has been written for a while.

    Args:
        console: of the log.
        first_s: seconds of a new stage without a word.
        repeat_s: seconds after which a stage that goes on is named again.
    """

    def __init__(self, console: Console, first_s: float = FIRST_WORD_S, repeat_s: float = REPEAT_S) -> None:
        self._console = console
        self._first_s = first_s
        self._repeat_s = repeat_s
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._stage = ""
        self._began = self._due = 0.0

    def __enter__(self) -> Self:
        self._done.clear()
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()

    def tell(self, stage: str) -> None:
        """From now on this is done."""
        with self._lock:
            if stage != self._stage:
                self._stage, self._began = stage, time.monotonic()
                self._due = self._began + self._first_s

    def postpone(self) -> None:
        """Something else was written: silence begins anew."""
        with self._lock:
            self._due = max(self._due, time.monotonic() + self._repeat_s)

    def _beat(self) -> None:
        while not self._done.wait(_TICK_S):
            with self._lock:
                if not self._stage or time.monotonic() < self._due:
                    continue
                seconds = time.monotonic() - self._began
                self._due = time.monotonic() + self._repeat_s
                text = f"... {self._stage} ({seconds:.0f} s)"
            self._console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


class Progress:
    """What one command is doing, on standard error. A context manager; without `tell` it stays silent."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or terminal.console(stderr=True)
        self._shown: Status | Heartbeat
        if self._console.is_terminal:
            self._shown = Status("", console=self._console)
        else:
            self._shown = Heartbeat(self._console)

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.__exit__(kind, error, trace)

    def tell(self, stage: str) -> None:
        """From now on this is done."""
        if isinstance(self._shown, Heartbeat):
            self._shown.tell(stage)
        else:
            self._shown.update(f"[dim]{escape(stage)}[/]")
