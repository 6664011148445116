"""Final kernels in turns with PyTorch, for the problems whose ratio of two sittings is nearly 1.

    python benchmarks/forty/sitting.py [--rows FILE] [--search STUDY FOLDER] [--minutes M] [--part 1/1]

Needs an H200 that nobody else uses, on a machine with one GPU. FOLDER is where a search lies that has gone on since its
archive was kept. Problems come in the order of how near to 1 their ratio is; a row is written as soon as it is there,
and a kernel with a row of all modes is not timed again. `--part 2/3` takes every third problem from the second on, into
a file of its own: several processes have their inputs ready while one of them holds the GPU. PyTorch's compiler is
quickest from its caches: give `kernelblaster problems baseline` for the same problems first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from outcomes import NEAR, SITTING, NearRow, Row, rows_of, two_sittings
from problems import shipped
from searching import DATASET, STUDIES, last_final, layout_of, prepare, unpacked
from shares import share

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.records.layout import RunLayout
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.pytorch_baseline import FINAL, BaselinePlan, measure_baseline
from kernelblaster.storage.jsonl import append_line, cut_torn_line
from kernelblaster.storage.records import read_records

MODES = (TorchMode.EAGER, TorchMode.COMPILE, TorchMode.MAX_AUTOTUNE)
"""The fastest of these problems' modes is one of them, by the times that ship."""
SECONDS = 3.0
"""Of sampling a problem."""


@dataclass(frozen=True)
class Layouts:
    """Where the searches lie, the first one first, and the data set with their starts."""

    dataset: Path
    searches: Sequence[RunLayout]

    def kernel(self, row: Row) -> str:
        """What counts as the problem's kernel: the last search's that ended with one, else the start."""
        final = last_final(self.searches, row.name)
        return read_start(find_problem(row.name, self.dataset)) if final is None else final


def near(rows: Iterable[Row]) -> list[Row]:
    """Those that are timed, nearest first."""
    found = [(abs(ratio - 1), row) for row in rows if (ratio := two_sittings(row)) is not None]
    return [row for distance, row in sorted(found, key=lambda pair: pair[0]) if distance <= NEAR]


def sit(rows: Sequence[Row], layouts: Layouts, path: Path, minutes: float) -> None:
    """Time what has no row of its kernel yet, until the minutes are over."""
    end = time.monotonic() + 60 * minutes
    cut_torn_line(path)
    config = RunConfig(device=DeviceKind.CUDA, precision=Precision.FP16)
    device = choose_device(config, print).device
    known = {
        (row.times.problem, row.kernel): row.times.timings.keys() | row.times.failures.keys()
        for row in read_records(path, NearRow)
    }
    for row in rows:
        problem = shipped(row.name)
        if known.get((row.name, row.kernel), set()) >= set(MODES) or time.monotonic() > end:
            continue
        plan = BaselinePlan(kernels={FINAL: layouts.kernel(row)}, modes=MODES, seconds=SECONDS)
        with InputStore() as inputs:
            times = measure_baseline(problem, Precision.FP16, StandardWorkload.FULL, device, inputs, plan)
        append_line(path, NearRow(kernel=row.kernel, times=times).model_dump_json().encode())
        told = ", ".join(f"{name} {timing.median_us:.1f}" for name, timing in times.timings.items())
        print(f"{row.name}: {told} {times.failures or ''}", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=SITTING)
    parser.add_argument("--search", nargs=2, action="append", default=[], metavar=("STUDY", "FOLDER"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--part", type=share, default=(1, 1))
    parser.add_argument("--names", action="store_true", help="print which problems are timed, and do nothing else")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        prepare(folder, None)
        gone_on = {study: Path(place) for study, place in given.search}
        searches = [
            layout_of(gone_on[name], study) if name in gone_on else unpacked(study, folder / name)
            for name, study in STUDIES.items()
            if name in gone_on or study.archive.exists()
        ]
        number, parts = given.part
        chosen = near(rows_of(searches))[number - 1 :: parts]
        if given.names:
            print(" ".join(row.name for row in chosen))
        else:
            sit(chosen, Layouts(folder / DATASET, searches), given.rows, given.minutes)


if __name__ == "__main__":
    main()
