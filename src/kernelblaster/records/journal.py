"""`events.jsonl`: the append-only record of a problem's search, and the fan-out of events to whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.agent.events import Event, EventSink, parse_event
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line


class Journal:
    """Appends events to a file and hands them on.

    A line is written with one system call, so that a kill leaves at most one torn line at the end; `read_events`
    skips it.
    """

    def __init__(self, path: Path, watchers: Sequence[EventSink] = ()) -> None:
        self._path = path
        self._watchers = tuple(watchers)

    def __enter__(self) -> Self:
        cut_torn_line(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open."""

    def emit(self, event: Event) -> None:
        """Record an event and show it."""
        append_line(self._path, event.model_dump_json().encode(), sync=False)
        for watcher in self._watchers:
            watcher.emit(event)


def read_events(path: Path) -> list[Event]:
    """Events of a journal in order; torn lines left by a kill are skipped."""
    events = []
    for line in complete_lines(path.read_bytes()):
        try:
            events.append(parse_event(line.data))
        except ValueError:
            continue
    return events
