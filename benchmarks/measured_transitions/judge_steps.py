"""Judges the steps of the two recorded searches of which no prompt tells what became of them, each with its parent.

    python benchmarks/measured_transitions/judge_steps.py [--minutes M] [--workers N] [--rows FILE]

Needs an H200. A row is written as soon as it is there, and its step is not judged again. Judging is that of the content
trial: fp16, size `medium`, parent and kernel timed in turns in one sitting.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "content_trial"))

from judging import ToJudge, judge_all
from parents import RECORDINGS, profiled_parents
from recorded_edges import JUDGED_STEPS, outcomes_of, recorded_steps, step_id
from rows import JudgedReply, read

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.models.recorded import read_recording
from kernelblaster.paths import data_dir


def unknown_steps() -> Iterator[ToJudge]:
    """Those whose parent's profile was kept: without it a step is no transition, whatever became of it."""
    parents = {parent.id: parent for parent in profiled_parents()}
    for recording in RECORDINGS:
        exchanges = read_recording(data_dir() / "recordings" / recording).exchanges
        steps = recorded_steps(exchanges)
        outcomes = outcomes_of(steps, exchanges)
        for step in steps:
            parent = parents.get(f"{step.asked.tags['problem']}/{step.asked.tags['parent_sha256'][:8]}")
            if outcomes[step.place] is None and parent is not None:
                yield ToJudge(step_id(step), str(parent.problem.id), parent.source, step.replies[-1].reply)


def unjudged(path: Path) -> Iterator[ToJudge]:
    """Those without a row, in the order of their problems and kernels, which share inputs."""
    judged = {row.id for row in read(path, JudgedReply)}
    yield from sorted(
        (one for one in unknown_steps() if one.id not in judged), key=lambda one: (one.problem, one.parent)
    )


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
    judge_all(given.device, given.rows, given.minutes, given.workers, unjudged(given.rows))


if __name__ == "__main__":
    main()
