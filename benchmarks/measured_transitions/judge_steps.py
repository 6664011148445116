"""Judges the steps of the two recorded searches of which no prompt tells what became of them, each with its parent.

    python benchmarks/measured_transitions/judge_steps.py [--minutes M] [--workers N] [--rows FILE]

Needs an H200. A row is written as soon as it is there, and its step is not judged again. Judging is that of the content
trial: fp16, size `medium`, parent and kernel timed in turns in one sitting.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "content_trial"))

from parents import RECORDINGS, Parent, profiled_parents
from recorded_edges import JUDGED_STEPS, outcomes_of, recorded_steps, step_id
from rows import JudgedReply, read
from trial import Bench

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.models.recorded import read_recording
from kernelblaster.paths import data_dir
from kernelblaster.storage.jsonl import append_line, cut_torn_line


@dataclass(frozen=True)
class UnknownStep:
    """A reply of a recorded search whose outcome was not kept, and what it was to improve."""

    id: str
    parent: Parent
    reply: str


def unknown_steps() -> Iterator[UnknownStep]:
    """Those whose parent's profile was kept: without it a step is no transition, whatever became of it."""
    parents = {parent.id: parent for parent in profiled_parents()}
    for recording in RECORDINGS:
        exchanges = read_recording(data_dir() / "recordings" / recording).exchanges
        steps = recorded_steps(exchanges)
        outcomes = outcomes_of(steps, exchanges)
        for step in steps:
            parent = parents.get(f"{step.asked.tags['problem']}/{step.asked.tags['parent_sha256'][:8]}")
            if outcomes[step.place] is None and parent is not None:
                yield UnknownStep(step_id(step), parent, step.replies[-1].reply)


def judge(kind: DeviceKind, path: Path, minutes: float, workers: int) -> None:
    """Judge the steps without a row, until the minutes are over."""
    end = time.monotonic() + 60 * minutes
    cut_torn_line(path)
    judged = {row.id for row in read(path, JudgedReply)}
    waiting = sorted((step for step in unknown_steps() if step.id not in judged), key=lambda step: step.parent.id)
    print(f"{len(waiting)} steps to judge", flush=True)
    with InputStore() as inputs, ThreadPoolExecutor(workers) as pool:
        bench = Bench(kind, inputs)

        def work(step: UnknownStep) -> JudgedReply | None:
            if time.monotonic() >= end:
                return None
            try:
                return bench.judge(step.id, step.parent.problem, step.parent.source, step.reply)
            except DeviceError as error:  # the machine's failure is no row: the same command judges the step again
                print(f"{step.id} not judged: {error.message}", flush=True)
                return None

        for done in as_completed([pool.submit(work, step) for step in waiting]):
            if (row := done.result()) is not None:
                append_line(path, row.model_dump_json().encode())
                print(f"{row.id} {row.verdict} {row.speedup or ''} ({row.seconds:.0f} s) {row.reason[:80]}", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CUDA)
    parser.add_argument("--rows", type=Path, default=JUDGED_STEPS)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--workers", type=int, default=5)
    given = parser.parse_args()
    if given.device is DeviceKind.EMULATED and given.rows == JUDGED_STEPS:
        parser.error("modelled times belong into another file: --rows FILE")
    judge(given.device, given.rows, given.minutes, given.workers)


if __name__ == "__main__":
    main()
