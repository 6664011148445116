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
from kernelblaster.records.summary import RunSummary
from kernelblaster.runs.pytorch_baseline import FINAL, START, BaselineRow, Ratio

IMPLEMENTATIONS = (START, FINAL, "eager", "compile")


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
    """The final kernel against the faster of eager and torch.compile; the start stands in where there is no final."""
    baselines = [row.timings[name].median_us for name in ("eager", "compile") if name in row.timings]
    ours = row.timings.get(FINAL) or row.timings.get(START)
    return min(baselines) / ours.median_us if baselines and ours else None


def render(rows: list[BaselineRow]) -> str:
    """The table beside PyTorch."""
    first = rows[0]
    lines = [
        f"Driver {first.device.driver_version}, CUDA {first.device.cuda_version}, PyTorch {first.torch}, "
        f"{first.precision}. Size `{first.workload}` (KernelBench's shapes). Microseconds of the whole call with a "
        "cold L2: median of samples taken in turns among all four in one run, with the 95 % bootstrap interval. Inputs "
        "are random.",
        "",
        "| problem | start | final | PyTorch eager | torch.compile | final over start | over eager | over compile "
        "| samples |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [time_cell(row.timings.get(name), row.failures.get(name)) for name in IMPLEMENTATIONS]
        ratios = [ratio_cell(row.final_against.get(name)) for name in (START, "eager", "compile")]
        samples = row.timings[START].samples if START in row.timings else 0
        lines.append(f"| {row.problem} {row.name} | {' | '.join((*cells, *ratios))} | {samples} |")
    over_start = [row.final_against[START].speedup if START in row.final_against else 1.0 for row in rows]
    over_torch = [value for value in map(better_baseline, rows) if value is not None]
    faster = sum(value > 1 for value in over_torch)
    lines += [
        "",
        f"Geometric mean over the start: {geometric_mean(over_start):.2f} (no final kernel counts as 1). Over the "
        f"better of eager and torch.compile: {geometric_mean(over_torch):.2f}; faster than both on {faster} of "
        f"{len(over_torch)}.",
    ]
    return "\n".join(lines) + "\n"


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
