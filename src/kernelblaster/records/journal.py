"""`events.jsonl`: the append-only record of a problem's search, and the fan-out of events to whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelblaster.agent.events import Event, EventSink, Waiting, parse_event
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line


class Journal:
    """Appends events to a file and hands them on, each once, however often a search is started.

    A continued search runs through its nodes again and emits the same events again; these are dropped. Only pending
    requests are shown at every start. A line is written with one system call, so that a kill leaves at most
    one torn line, at the end, which is cut off here.
    """

    def __init__(self, path: Path, watchers: Sequence[EventSink] = ()) -> None:
        self._path = path
        self._watchers = tuple(watchers)
        cut_torn_line(path)
        self._told = {event.identity for event in read_events(path)} if path.exists() else set()

    def emit(self, event: Event) -> None:
        """Record an event and show it."""
        fresh = event.identity not in self._told
        if fresh:
            append_line(self._path, event.model_dump_json().encode(), sync=False)
            self._told.add(event.identity)
        if fresh or isinstance(event, Waiting):
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
