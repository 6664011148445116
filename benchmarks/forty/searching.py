"""The search of docs/results/forty/plan.md: its settings, one start of it, and a start that is watched.

A watched start is a process of its own. Its run is packed again and again, so that whatever ends the machine costs
seconds; it is interrupted when its minutes are over, and given again when the machine has failed it.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archive import EXCHANGE, OUT, pack, unpack
from problems import BEHIND, NAMES, RESULTS, STILL_BEHIND, make_dataset, problems_of, shipped

from kernelblaster import optimize
from kernelblaster.agent.events import Event, Waiting
from kernelblaster.config import (
    BudgetConfig,
    EvaluationConfig,
    ModelConfig,
    ModelKind,
    RunConfig,
    SearchConfig,
    SearchPart,
)
from kernelblaster.devices.base import Device
from kernelblaster.errors import ExitCode
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.records.layout import FINAL_KERNEL, RunLayout
from kernelblaster.records.summary import RunSummary

DATASET = "dataset"
REPLIES = 2
"""To a problem: one to its start, one to the fastest kernel then."""
MOST_REPLIES = 4
"""To a problem whose kernel PyTorch is faster than after those, as the plan says."""
PROBLEMS_AT_ONCE = 40
PROCESSES = 6
"""On each GPU."""
TIMING_SECONDS = 1.5
PACK_EVERY_S = 20.0
LAST_S = 30.0
"""What a start that is interrupted may take to end."""
MOST_STARTS = 4
_ENDED = (ExitCode.OK, ExitCode.FAILED, ExitCode.NO_IMPROVEMENT, ExitCode.WAITING, ExitCode.MODEL, ExitCode.INTERRUPTED)
"""What another start at once would not change."""


@dataclass(frozen=True)
class Study:
    """One of the searches of the plan.

    Attributes:
        experiment: its name, in the run and on the command line.
        names: its problems.
        results: where its archive and its exchange are kept.
        rollouts: replies side by side, in each generation of a round.
        goes_on: searches whose final kernels are its starts, the last one's that has one.
    """

    experiment: str
    names: tuple[str, ...]
    results: Path
    rollouts: int
    goes_on: tuple[Study, ...] = ()

    @property
    def archive(self) -> Path:
        return self.results / "run.tar.xz"


FIRST = Study("forty", NAMES, RESULTS, rollouts=1)
AGAIN = Study("forty_again", BEHIND, RESULTS / "again", rollouts=2)
"""From the knowledge base as the first has left it."""
THIRD = Study("forty_third", STILL_BEHIND, RESULTS / "third", rollouts=6, goes_on=(FIRST, AGAIN))
"""Six replies side by side to what the first two have left."""
STUDIES = {study.experiment: study for study in (FIRST, AGAIN, THIRD)}


def settings(
    place: Path,
    study: Study = FIRST,
    *,
    device: str = "cuda",
    size: str = StandardWorkload.FULL,
    processes: int = PROCESSES,
    gpus: Sequence[str] = (),
    replies: int = REPLIES,
) -> RunConfig:
    """As the plan says; a rehearsal may be on another device and at another size."""
    return RunConfig(
        precision=Precision.FP16,
        experiment=study.experiment,
        out=place / OUT,
        device=device,
        gpu_type="h200",
        size=size,
        concurrency=PROBLEMS_AT_ONCE,
        search=SearchConfig(
            rounds=1, rollouts=study.rollouts, steps=replies, repairs=1, sweep_variants=8,
            ablate=(SearchPart.PAIR_LESSONS, SearchPart.REFLECTION, SearchPart.REVIEW),
        ),
        budget=BudgetConfig(tokens=10_000_000),
        model=ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="claude"),
        evaluation=EvaluationConfig(
            in_company=True, max_seconds_timing=TIMING_SECONDS,
            processes=processes * max(1, len(gpus)), gpus=tuple(gpus),
        ),
    )  # fmt: skip


def prepare(place: Path, study: Study | None = FIRST) -> list[Problem]:
    """Have the data set below a folder, and what is kept of the run; a run that lies there goes on instead.

    Requests and replies that are kept are copied each time: they may have come since. None begins anew.
    """
    if study is not None and study.archive.exists():
        if not (place / OUT).exists():
            unpack(study.archive, place)
        shutil.copytree(study.results / EXCHANGE, place / EXCHANGE, dirs_exist_ok=True)
    return problems_of(make_dataset(place / DATASET, _starts(study) if study else {}))


def _starts(study: Study) -> dict[str, str]:
    """The final kernels that a search goes on from."""
    with tempfile.TemporaryDirectory() as folder:
        layouts = [unpacked(earlier, Path(folder) / earlier.experiment) for earlier in study.goes_on]
        finals = {name: last_final(layouts, name) for name in study.names}
    return {name: final for name, final in finals.items() if final is not None}


def last_final(layouts: Sequence[RunLayout], name: str) -> str | None:
    """The final kernel of the last of these searches that ended with one; None where none did."""
    for layout in reversed(layouts):
        final = layout.problem(shipped(name)) / FINAL_KERNEL
        if final.is_file():
            return final.read_text(encoding="utf-8")
    return None


def layout_of(place: Path, study: Study = FIRST) -> RunLayout:
    """Where the run lies below a folder."""
    return RunLayout.of(settings(place, study))


def unpacked(study: Study, place: Path) -> RunLayout:
    """The search as it is kept, below a folder."""
    unpack(study.archive, place)
    return layout_of(place, study)


def search(place: Path, config: RunConfig, problems: Sequence[Problem], *, device: Device | None = None) -> RunSummary:
    """One start: until all is finished or waits for replies; events are printed. Raises as `optimize`."""

    def tell(event: Event) -> None:
        seconds = time.monotonic() - began
        what = getattr(event, "verdict", "") or getattr(event, "status", "") or getattr(event, "outcome", "")
        if not isinstance(event, Waiting):
            print(f"{seconds:6.1f} s {event.slot} {getattr(event, 'kind', '')} {what}", flush=True)

    began = time.monotonic()
    return optimize(problems, config=config, device=device, on_event=tell, exchange=place / EXCHANGE)


@dataclass(frozen=True)
class Watch:
    """A start in a process of its own.

    Attributes:
        command: what starts it, or starts it again.
        place: where its run lies.
        archive: what is packed, while it runs and at the end.
        minutes: after which it is interrupted.
        every_s: seconds between two archives.
    """

    command: Sequence[str]
    place: Path
    archive: Path
    minutes: float
    every_s: float = PACK_EVERY_S

    def run(self) -> int:
        """The exit code of the last start. The archive holds whatever it has left."""
        until = time.monotonic() + 60 * self.minutes
        code = int(ExitCode.INTERRUPTED)
        try:
            for number in range(1, MOST_STARTS + 1):
                code = self._start(until)
                if code in map(int, _ENDED) or time.monotonic() > until:
                    break
                print(f"start {number} ended with {code}", flush=True)
        finally:
            pack(self.place, self.archive)
        return code

    def _start(self, until: float) -> int:
        process = subprocess.Popen(self.command)
        try:
            while process.poll() is None and time.monotonic() < until:
                self._wait(process, min(self.every_s, until - time.monotonic()))
                self._pack_meanwhile()
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                self._wait(process, LAST_S)
        finally:
            process.kill()
        return process.wait()

    def _pack_meanwhile(self) -> None:
        """An archive of a run that goes on; one that fails costs nothing but itself."""
        try:
            pack(self.place, self.archive)
        except (OSError, sqlite3.Error) as error:
            print(f"not packed: {error}", flush=True)

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
        try:
            process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            return


def interrupted_by_sigterm() -> None:
    """Whoever ends this process politely gets the last archive, too."""

    def end(*_: object) -> None:
        sys.exit(int(ExitCode.INTERRUPTED))

    signal.signal(signal.SIGTERM, end)
