"""Write the results tables of a run as Markdown.

    kernelblaster baseline --subset level1,level2 --problem-numbers ... --root RUN --json > rows.json
    python benchmarks/results_table.py rows.json
    python benchmarks/results_table.py --summary RUN/summary.json

The first prints start and final beside PyTorch, each row measured in one run; the second, start and final as the search
itself measured them. Every figure comes from the JSON files; problems without a final kernel keep their row.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from pydantic import TypeAdapter

from kernelblaster.evaluation.results import Comparison, Timing
from kernelblaster.records.baselines import BaselineRow, Ratio, WallTime
from kernelblaster.records.summary import RunSummary
from kernelblaster.runs.pytorch_baseline import FINAL, START, TORCH_MODES

LABELS = {START: START, FINAL: FINAL, "eager": "PyTorch eager", "compile": "torch.compile"}
LABELS |= {mode: f"torch.compile {mode}" for mode in TORCH_MODES if mode not in LABELS}
IMPLEMENTATIONS = tuple(LABELS)


def time_cell(timing: Timing | None, failure: str | None) -> str:
    """`1871.2 [1870.1, 1872.4]`, the failure, or a dash."""
    if timing is not None:
        return f"{timing.median_us:.1f} [{timing.low_us:.1f}, {timing.high_us:.1f}]"
    return failure or "-"


def ratio_cell(ratio: Ratio | Comparison | None) -> str:
    """`2.31 [2.30, 2.32]` or a dash."""
    return f"{ratio.speedup:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio else "-"


def geometric_mean(values: list[float]) -> float:
    """Of positive numbers."""
    return math.exp(sum(map(math.log, values)) / len(values))


def better_baseline(row: BaselineRow) -> float | None:
    """The final kernel against the fastest way to run PyTorch; the start stands in where there is no final."""
    baselines = [row.timings[name].median_us for name in TORCH_MODES if name in row.timings]
    ours = row.timings.get(FINAL) or row.timings.get(START)
    return min(baselines) / ours.median_us if baselines and ours else None


def render(rows: list[BaselineRow]) -> str:
    """The tables beside PyTorch: device times with ratios, then wall times."""
    names = [name for name in IMPLEMENTATIONS if any(name in row.timings or name in row.failures for row in rows)]
    against = [name for name in names if name != FINAL]
    lines = [
        *conditions(rows),
        "",
        f"| problem | {' | '.join(LABELS[name] for name in names)} "
        f"| {' | '.join(f'final over {name}' for name in against)} | samples |",
        "|---" * (2 + len(names) + len(against)) + "|",
    ]
    for row in rows:
        cells = [time_cell(row.timings.get(name), row.failures.get(name)) for name in names]
        ratios = [ratio_cell(row.final_against.get(name)) for name in against]
        samples = row.timings[FINAL].samples if FINAL in row.timings else 0
        lines.append(f"| {row.problem} {row.name} | {' | '.join((*cells, *ratios))} | {samples} |")
    over_start = [row.final_against[START].speedup if START in row.final_against else 1.0 for row in rows]
    over_torch = [value for value in map(better_baseline, rows) if value is not None]
    lines += [
        "",
        f"Geometric mean over the start: {geometric_mean(over_start):.2f} (no final kernel counts as 1).",
    ]
    if over_torch:
        faster = sum(value > 1 for value in over_torch)
        lines.append(
            f"Over the fastest way to run PyTorch: {geometric_mean(over_torch):.2f}; faster than all of them on "
            f"{faster} of {len(over_torch)}."
        )
    return "\n".join(lines + wall_table(rows, names)) + "\n"


def conditions(rows: list[BaselineRow]) -> list[str]:
    """What the times were taken on, and by which rule."""
    first = rows[0]
    text = (
        f"{first.device.name}, driver {first.device.driver_version}, CUDA {first.device.cuda_version}, PyTorch "
        f"{first.torch}, {first.precision}. Size `{first.workload}` (KernelBench's shapes). Device time of the whole "
        "call in microseconds, cold L2: median of samples taken in turns among all columns, with the 95 % bootstrap "
        "interval. Inputs are random."
    )
    covers = [row.cover for row in rows if row.cover is not None]
    if len(covers) < len(rows):
        return [
            text,
            "",
            "Launches were hidden for some 40 us: times of PyTorch may hold host time beyond that, ours do not.",
        ]
    exposed = sum(sum(cover.exposed.values()) for cover in covers)
    longest = max(max(cover.launch_us.values(), default=0.0) for cover in covers)
    text += (
        f" Launches are hidden for all columns alike, behind {min(one.cover_us for one in covers):.0f} us of other "
        f"work or more (host time of a launch: up to {longest:.0f} us); {exposed} samples took longer to launch."
    )
    if first.settings is not None:
        found = first.settings
        text += (
            f" cuDNN {found.cudnn}, Triton {found.triton}; TF32 in matrix products "
            f"{'on' if found.tf32_matmul else 'off'}, in cuDNN {'on' if found.tf32_cudnn else 'off'}; sums of fp16 "
            f"products in fp16 {'allowed' if found.fp16_reduced_precision_reduction else 'not allowed'}."
        )
    clocks = [timing.conditions for row in rows for timing in row.timings.values() if timing.conditions]
    if clocks:
        text += (
            f" SM clock {min(one.sm_mhz_low for one in clocks):.0f} to "
            f"{max(one.sm_mhz_high for one in clocks):.0f} MHz, "
            f"{min(one.temperature_low for one in clocks):.0f} to {max(one.temperature_high for one in clocks):.0f} C."
        )
    return [text]


def wall_table(rows: list[BaselineRow], names: list[str]) -> list[str]:
    """Wall times, where they were taken."""
    if not any(row.walls for row in rows):
        return []
    lines = [
        "",
        "Wall time of one call on an idle GPU in microseconds, from the call until the device is idle: launch and wait "
        "included, of C++ for our kernels and of Python for PyTorch.",
        "",
        f"| problem | {' | '.join(LABELS[name] for name in names)} |",
        "|---" * (1 + len(names)) + "|",
    ]
    for row in rows:
        cells = [wall_cell(row.walls.get(name)) for name in names]
        lines.append(f"| {row.problem} {row.name} | {' | '.join(cells)} |")
    return lines


def wall_cell(wall: WallTime | None) -> str:
    """`83.1 [81.0, 90.2]` or a dash."""
    return f"{wall.median_us:.1f} [{wall.low_us:.1f}, {wall.high_us:.1f}]" if wall else "-"


def render_search(summary: RunSummary) -> str:
    """Start and final as the search measured them, at the size it timed."""
    lines = [
        "| problem | start | final | final over start | roofline share | candidates by verdict | outcome |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in summary.problems:
        found = row.comparison
        final = f"{time_cell(found.candidate, None)} | {ratio_cell(found)} | " if found else "- | - | "
        share = f"{found.candidate.floor_fraction:.0%}" if found else "-"
        verdicts = ", ".join(f"{n} {v}" for v, n in sorted(row.verdicts.items()))
        start = time_cell(found.baseline if found else row.start, None)
        lines.append(f"| {row.problem} {row.name} | {start} | {final}{share} | {verdicts} | {row.status} |")
    gains = [row.comparison.speedup if row.comparison else 1.0 for row in summary.problems]
    lines += ["", f"Geometric mean over the start: {geometric_mean(gains):.2f} (no final kernel counts as 1)."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the files, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="?", help="what `kernelblaster baseline --json` printed")
    parser.add_argument("--summary", type=Path, help="summary.json of a run")
    options = parser.parse_args()
    if options.rows is None and options.summary is None:
        parser.error("give rows, a summary, or both")
    if options.rows is not None:
        rows = TypeAdapter(list[BaselineRow]).validate_python(json.loads(options.rows.read_text()))
        print(render(rows), end="")
    if options.summary is not None:
        print(render_search(RunSummary.model_validate_json(options.summary.read_text())), end="")


if __name__ == "__main__":
    main()
