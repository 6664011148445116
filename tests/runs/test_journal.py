"""The event journal survives kills and repeats nothing it should not."""

from __future__ import annotations

import time
from pathlib import Path

from kernelblaster.agent.events import Evaluated, Event, StepStarted, Waiting
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
    journal = Journal(tmp_path / "deep" / "events.jsonl", [watcher])
    for step in range(5):
        journal.emit(event(step))
    assert [e.slot[-1] for e in read_events(tmp_path / "deep" / "events.jsonl")] == list("01234")
    assert len(watcher.seen) == 5


def test_what_a_resumed_search_tells_again_is_neither_written_nor_shown_again(tmp_path: Path) -> None:
    path, waiting = tmp_path / "events.jsonl", Waiting(problem="p", slot="s", request_id="1", request_file="f")
    evaluated = Evaluated(
        problem="p", slot="s", candidate="c", verdict="correct", reason="", speedup=1.1, decision="faster",
        median_us=2.0, reused=False,
    )  # fmt: skip
    for again in (False, True, True):
        watcher = Collector()
        journal = Journal(path, [watcher])
        for one in (
            event(1),
            evaluated.model_copy(update={"reused": again, "speedup": 1.2 if again else 1.1}),
            waiting,
        ):
            journal.emit(one.model_copy(update={"at": time.time()}))
        assert len(watcher.seen) == (1 if again else 3)
    journal.emit(evaluated.model_copy(update={"verdict": "timeout"}))
    assert [e.kind for e in read_events(path)] == ["step_started", "evaluated", "waiting", "evaluated"]


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = Journal(path)
    journal.emit(event(1))
    with path.open("ab") as file:
        file.write(b'{"kind": "step_started", "prob')
    journal = Journal(path)
    journal.emit(event(2))
    assert [e.slot[-1] for e in read_events(path)] == ["1", "2"]
