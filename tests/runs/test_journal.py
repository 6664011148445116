"""The event journal survives kills and repeats nothing it should not."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.agent.events import Event, StepStarted
from kernelblaster.records.journal import Journal, read_events


def event(step: int) -> StepStarted:
    return StepStarted(problem="level1/023", slot=f"level1/023/r1/rollout-0/step-{step}", parent="abc", gain=1.0)


class Collector:
    def __init__(self) -> None:
        self.seen: list[Event] = []

    def emit(self, event: Event) -> None:
        self.seen.append(event)


def test_events_are_kept_in_order_and_shown(tmp_path: Path) -> None:
    watcher = Collector()
    with Journal(tmp_path / "deep" / "events.jsonl", [watcher]) as journal:
        for step in range(5):
            journal.emit(event(step))
    assert [e.slot[-1] for e in read_events(tmp_path / "deep" / "events.jsonl")] == list("01234")
    assert len(watcher.seen) == 5


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with Journal(path) as journal:
        journal.emit(event(1))
    with path.open("ab") as file:
        file.write(b'{"kind": "step_started", "prob')
    with Journal(path) as journal:
        journal.emit(event(2))
    assert [e.slot[-1] for e in read_events(path)] == ["1", "2"]
