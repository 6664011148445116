"""Times the shipped final kernels of the H200 beside PyTorch again, and writes the table of docs/results/h200.md.

    python benchmarks/h200_table.py --rows FILE [--minutes M] [--problems level1/001,...] [--seconds S]
    python benchmarks/h200_table.py --rows FILE --write
    python benchmarks/h200_table.py --pytorch data/baselines/h200/fp16.jsonl

The first needs a GPU. It compiles all kernels side by side, then times problem by problem and writes each row to FILE
(JSON lines) as soon as it is there; a problem with a row is not measured again, so that a run that was cut off, or has
used up its minutes, is continued by the same command. The second puts the rows into docs/results/h200_baseline.json
and their tables into docs/results/h200.md; it refuses where a shipped kernel has no row, and rows in which launches of
PyTorch were not hidden. The third puts PyTorch's times of `problems baseline` beside the kernels' times of
h200_baseline.json, into a section of their own: both by the same rule, in two sittings.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from results_table import LABELS, better_baseline, geometric_mean, render, time_cell

from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, read_times
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.records.baselines import BaselineRow
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.evaluations import find_problem
from kernelblaster.runs.pytorch_baseline import FINAL, START, BaselinePlan, measure_baseline

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
KERNELS = RESULTS / "h200_kernels"
CONFIG = RunConfig(device=DeviceKind.CUDA, precision=Precision.FP16)
HEADING = "## Beside PyTorch\n"
TWO_HEADING = "## Beside PyTorch with launches hidden\n"
SAID = "Made by `python benchmarks/h200_table.py`.\n"


@dataclass(frozen=True)
class Shipped:
    """A problem, its naive start, and the final kernel that is shipped for it."""

    problem: Problem
    kernels: Mapping[str, str]


def shipped(only: frozenset[str] = frozenset()) -> list[Shipped]:
    """All shipped final kernels, or those of some problems."""
    found = []
    for path in sorted(KERNELS.glob("*.cu")):
        level, number, _ = path.stem.split("_", 2)
        name = f"{level}/{number}"
        if only and name not in only:
            continue
        problem = find_problem(f"{level}/{int(number)}", CONFIG)
        kernels = {START: problem.init_path.read_text(), FINAL: path.read_text()}
        found.append(Shipped(problem, kernels))
    return found


def read_rows(path: Path) -> list[BaselineRow]:
    """Rows in the order of the problems."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [BaselineRow.model_validate_json(line) for line in lines if line]
    return sorted(rows, key=lambda row: row.problem)


def build_all(device: Device, left: list[Shipped]) -> None:
    """Fill the cache of builds, as many at a time as there are cores; what cannot be built is told with its row."""

    def build(one: Shipped, source: str) -> None:
        with suppress(BuildFailure):
            device.build(source, device.prepare(one.problem, CONFIG.precision))

    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        jobs = [threads.submit(build, one, source) for one in left for source in one.kernels.values()]
        for job in jobs:
            job.result()


def measure(options: argparse.Namespace) -> None:
    """Time what has no row yet, until the minutes are used up."""
    began = time.monotonic()
    done = {row.problem for row in read_rows(options.rows)}
    left = [
        one for one in shipped(frozenset(filter(None, options.problems.split(",")))) if str(one.problem.id) not in done
    ]
    device = choose_device(CONFIG, print).device
    build_all(device, left)
    for number, one in enumerate(left):
        if time.monotonic() - began > 60 * options.minutes:
            print(f"{len(left) - number} problems are left")
            return
        plan = BaselinePlan(kernels=one.kernels, seconds=options.seconds)
        with InputStore() as inputs:
            row = measure_baseline(one.problem, CONFIG.precision, StandardWorkload.FULL, device, inputs, plan)
        with options.rows.open("a") as file:
            file.write(row.model_dump_json() + "\n")
        times = ", ".join(f"{name} {timing.median_us:.1f}" for name, timing in row.timings.items())
        print(f"{row.problem}: {times} {row.failures or ''}", flush=True)


def write(rows: list[BaselineRow]) -> None:
    """Put the rows and their tables where they are shipped. Raises SystemExit when a kernel has no row."""
    measured = {row.problem for row in rows}
    missing = [str(one.problem.id) for one in shipped() if str(one.problem.id) not in measured]
    if missing:
        raise SystemExit(f"no row of {', '.join(missing)}")
    if any(row.cover is None for row in rows):
        raise SystemExit("launches of PyTorch were not hidden in some rows: measure them again")
    page = RESULTS / "h200.md"
    section = f"{HEADING}\n{SAID}\n{render(rows)}\n"
    text, changed = re.subn(
        rf"{HEADING}.*?(?=^## )", lambda _: section, page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    if changed != 1:
        raise SystemExit(f"{page} has no section of that heading")
    (RESULTS / "h200_baseline.json").write_bytes(TypeAdapter(list[BaselineRow]).dump_json(rows) + b"\n")
    page.write_text(text)


def write_two_sittings(times: Path) -> None:
    """Put the shipped kernels' times beside PyTorch's of another sitting. Raises SystemExit where none are of both."""
    measured = TypeAdapter(list[BaselineRow]).validate_json((RESULTS / "h200_baseline.json").read_bytes())
    known = read_times([times])
    rows = []
    for row in measured:
        found = known.get((row.device.name, row.problem, row.precision, row.workload))
        if found is not None and found.times and FINAL in row.timings:
            rows.append(beside(row, found))
    if not rows:
        raise SystemExit(f"{times} holds no problem of h200_baseline.json")
    page = RESULTS / "h200.md"
    text, changed = re.subn(
        rf"{TWO_HEADING}.*?(?=^## )", lambda _: two_sittings(rows), page.read_text(), flags=re.DOTALL | re.MULTILINE
    )
    if changed != 1:
        raise SystemExit(f"{page} has no section of that heading")
    page.write_text(text)


def beside(row: BaselineRow, found: PytorchTimes) -> BaselineRow:
    """The row with PyTorch's times of another sitting."""
    final = row.timings[FINAL]
    timings = {START: row.timings[START], FINAL: final}
    for mode, one in found.times.items():
        figures = {"median_us": one.us, "low_us": one.low_us, "high_us": one.high_us, "samples": one.samples}
        timings[mode] = final.model_copy(update={**figures, "conditions": found.conditions})
    return row.model_copy(update={"timings": timings, "final_against": {}, "torch": found.torch})


def two_sittings(rows: list[BaselineRow]) -> str:
    """The section of the results page."""
    modes = [mode for mode in TorchMode if any(mode in row.timings for row in rows)]
    ratios = [ratio for ratio in map(better_baseline, rows) if ratio is not None]
    lines = [
        TWO_HEADING,
        "Made by `python benchmarks/h200_table.py --pytorch FILE`.",
        "",
        f"{rows[0].device.name}, PyTorch {rows[0].torch}, {rows[0].precision}, size `{rows[0].workload}`: device time "
        "of the whole call in microseconds, cold L2, launches hidden for as long as the slowest host needs, median "
        "with the 95 % bootstrap interval. The kernels' times are those of the table below, PyTorch's of "
        "`problems baseline`: the same rule and kind of GPU, another sitting, so that the ratios have no interval.",
        "",
        f"| problem | final | {' | '.join(LABELS[mode] for mode in modes)} | fastest PyTorch over final |",
        "|---" * (3 + len(modes)) + "|",
    ]
    for row in rows:
        cells = [time_cell(row.timings.get(name), None) for name in (FINAL, *modes)]
        lines.append(f"| {row.problem} {row.name} | {' | '.join(cells)} | {better_baseline(row):.2f} |")
    faster = sum(ratio > 1 for ratio in ratios)
    lines += ["", f"Geometric mean: {geometric_mean(ratios):.2f}; faster on {faster} of {len(ratios)}.", "", ""]
    return "\n".join(lines)


def main() -> None:
    """Measure, or write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, help="JSON lines, one problem each")
    parser.add_argument("--pytorch", type=Path, help="what `problems baseline` has recorded")
    parser.add_argument("--minutes", type=float, default=60.0, help="no problem is begun after that")
    parser.add_argument("--seconds", type=float, default=6.0, help="of sampling per problem")
    parser.add_argument("--problems", default="", help="level1/001,...; all that are shipped if left out")
    parser.add_argument("--write", action="store_true", help="write docs/results instead of measuring")
    options = parser.parse_args()
    if (options.rows is None) == (options.pytorch is None):
        parser.error("give --rows or --pytorch")
    if options.pytorch is not None:
        write_two_sittings(options.pytorch)
    elif options.write:
        write(read_rows(options.rows))
    else:
        measure(options)


if __name__ == "__main__":
    main()
