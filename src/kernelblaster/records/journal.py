"""`events.jsonl`: the append-only record of a problem's search, and the fan-out of events to whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.agent.events import Event, EventSink, parse_event


class Journal:
    """Appends events to a file and hands them on.

    A line is written with one system call, so that a kill leaves at most one torn line at the end; `read_events`
    skips it.
    """

    def __init__(self, path: Path, watchers: Sequence[EventSink] = ()) -> None:
        self._path = path
        self._watchers = tuple(watchers)

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        torn = self._path.exists() and not self._path.read_bytes().endswith(b"\n") and self._path.stat().st_size > 0
        self._file = self._path.open("ab", buffering=0)
        if torn:
            self._file.write(b"\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def emit(self, event: Event) -> None:
        """Record an event and show it."""
        self._file.write(event.model_dump_json().encode() + b"\n")
        for watcher in self._watchers:
            watcher.emit(event)


def read_events(path: Path) -> list[Event]:
    """Events of a journal in order; torn lines left by a kill are skipped."""
    events = []
    for line in path.read_bytes().splitlines():
        try:
            events.append(parse_event(line))
        except ValueError:
            continue
    return events
