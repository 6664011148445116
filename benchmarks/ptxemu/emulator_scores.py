"""Scores of the emulator on one page: what it leaves out, PTX vectors, errors per class of kernel, where speed stands.

    python benchmarks/ptxemu/emulator_scores.py                    # writes docs/emulator_scores.md
    python benchmarks/ptxemu/emulator_scores.py gpu FILE           # on a GPU: which vectors hold there, or why not

Vectors run now. Errors beside an H200 come from the table of all cases of docs/emulator_calibration.md, which has a
command of its own, by the program that a case belongs to.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "conformance"))

import numpy as np
from calibration_page import spearman
from conformance_suite import read_capture
from held_out_scores import section
from small_launch_scores import launches, sums_table, traffic_table
from vector_suites import Suite, as_ptxas_makes_it, suites

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble
from ptxemu.ptx.operations import memory_operations, signatures

if TYPE_CHECKING:
    from gpu_driver import Ran

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "emulator_scores.md"
CALIBRATION = ROOT / "docs" / "emulator_calibration.md"
ON_GPU = ROOT / "docs" / "results" / "ptxemu_vectors_h200.json"
PRODUCTS_ON_GPU = ON_GPU.with_name("ptxemu_wgmma_h200.json")
GOAL_SPEARMAN, GOAL_FACTOR = 0.95, 1.2
TOLD = 40
"""Forms of a suite that are printed where they do not hold on a GPU; the file has all."""
LEAST_CASES = 5
"""Of which an order of times is told."""
COUNTERS = ("warp instructions", "global load sectors", "shared wavefronts", "L2 read sectors", "DRAM bytes read")
_HEAD = """\
# Scores of the emulator

Made by `python benchmarks/ptxemu/emulator_scores.py`; not edited by hand.

## Limits

- Only an H200 was measured. Times of other GPUs are modelled from data sheets, and nobody has set them beside one.
- Times are modelled, not measured; they rank kernels, and may not be compared with measured ones.
- Kernels of the captures below were written for this project. Its model was fitted to half of them, which the errors
  include ([calibration](emulator_calibration.md) tells the halves apart). At kernels that were written for speed times
  are [less exact](#kernels-that-nothing-was-fitted-to).
- What a GPU has and the emulator lacks is listed in [emulator.md](emulator.md#what-is-left-out).
- Vectors judge values. Atomics, bulk copies, barriers, `mma`, `wmma` and `ldmatrix` have tests with values of their
  own, which are not counted here: without a vector below does not mean untested.
"""


@dataclass(frozen=True)
class CaseErrors:
    """One case beside the H200: relative errors of its counters where there is something to count, and both times."""

    case: str
    counters: Mapping[str, float]
    real_us: float
    modelled_us: float
    judges: bool
    """Of the half that nothing was fitted to."""
    since: bool = False
    """Of the programs that were captured last, which no half has."""

    @property
    def factor(self) -> float:
        """By how much the modelled time is too long or too short, 1 at best."""
        return max(self.real_us / self.modelled_us, self.modelled_us / self.real_us)


def case_errors(page: str) -> list[CaseErrors]:
    """The table of all cases of the page of the calibration."""
    rows = [line.strip("|").split("|") for line in page.partition("## All cases")[2].splitlines() if line[:1] == "|"]
    names = [one.strip() for one in rows[0]]
    found = []
    for row in rows[2:]:
        cells = dict(zip(names, (one.strip() for one in row), strict=True))
        counters = {name: abs(float(cells[name])) / 100 for name in COUNTERS if cells[name]}
        times = float(cells["real us"]), float(cells["modelled us"])
        name, _, mark = cells["case"].partition(" ")
        found.append(CaseErrors(name, counters, *times, judges=mark == "*", since=mark == "+"))
    return found


def class_table(errors: Iterable[CaseErrors], programs: Mapping[str, str]) -> list[str]:
    """Medians of each program's cases; the worst classes by time come first."""
    classes: defaultdict[str, list[CaseErrors]] = defaultdict(list)
    for one in errors:
        classes[programs[one.case]].append(one)
    ordered = sorted(classes, key=lambda name: -statistics.median(one.factor for one in classes[name]))
    lines = [
        f"| class | cases | time, median factor | worst | Spearman | {' | '.join(COUNTERS)} |",
        "|---|" + "---|" * (4 + len(COUNTERS)),
    ]
    for name in ordered:
        cases = classes[name]
        factors = [one.factor for one in cases]
        medians = [_median([one.counters[each] for one in cases if each in one.counters]) for each in COUNTERS]
        shown = f"{name} | {len(cases)} | {statistics.median(factors):.2f} | {max(factors):.2f} | {_order(cases)}"
        lines.append(f"| {shown} | {' | '.join(medians)} |")
    return lines


def goal_lines(errors: Sequence[CaseErrors]) -> list[str]:
    """What times reach of the goal, of the judging half, of both, and of the programs that no half has."""
    lines = ["| cases | how many | Spearman | median factor | within 1.2 | worst |", "|---|---|---|---|---|---|"]
    parts = {
        "judging half": [one for one in errors if one.judges],
        "both halves": [one for one in errors if not one.since],
        "captured last": [one for one in errors if one.since],
    }
    for name, cases in parts.items():
        if not cases:
            continue
        factors = [one.factor for one in cases]
        near = sum(one <= GOAL_FACTOR for one in factors) / len(factors)
        shown = f"{name} | {len(cases)} | {_order(cases)} | {statistics.median(factors):.2f} | {near:.0%}"
        lines.append(f"| {shown} | {max(factors):.2f} |")
    return lines


def _order(cases: Sequence[CaseErrors]) -> str:
    """Spearman correlation of real and modelled times; nothing where it says nothing."""
    if len(cases) < LEAST_CASES:
        return ""
    return f"{spearman([one.real_us for one in cases], [one.modelled_us for one in cases]):.3f}"


def _median(values: Sequence[float]) -> str:
    return f"{100 * statistics.median(values):.1f} %" if values else ""


def emulated_arrays(suite: Suite) -> list[list[np.ndarray]]:
    """The arrays of each form after it has run on the emulated core."""
    from ptx_machine import run

    with TemporaryDirectory() as scratch:
        module = Path(scratch) / "module"
        assemble(suite.ptx).write(module)
        outcome = run(ensure_core(default_cache_dir()).library, module, list(suite.launches), timeout_s=300)
    if outcome.error:
        raise SystemExit(f"{suite.name}: error {outcome.error}: {outcome.stderr}")
    return outcome.arrays


def emulated(suite: Suite) -> list[str]:
    """Forms that the emulated core gets wrong."""
    return suite.wrong(emulated_arrays(suite), suite.agrees)


def vector_table(found: Sequence[Suite], measured: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One row per suite; `measured` tells of each form that a GPU has executed what it gets otherwise, if anything."""
    lines = ["| suite | forms | values | agree, emulated | agree, H200 | how near |", "|---|---|---|---|---|---|"]
    for suite in found:
        forms, wrong = len(suite.forms), emulated(suite)
        ran = [not measured[suite.name][form] for form in suite.forms if form in measured.get(suite.name, {})]
        there = f"{sum(ran)}{f' of {len(ran)}' if len(ran) < forms else ''}" if ran else "not run"
        lines.append(
            f"| {suite.name} | {forms} | {suite.values} | {forms - len(wrong)} | {there} | {suite.tolerance} |"
        )
        print(f"{suite.name}: {forms} forms, {len(wrong)} wrong {wrong[:5]}", file=sys.stderr)
    return lines


def without_vectors(found: Sequence[Suite]) -> tuple[int, dict[str, int]]:
    """How many operations of lanes and memory the core has and, by family, how many of them no form executes."""
    known = {*signatures(), *(re.sub(r"_v\d$", "", name) for name in memory_operations())}
    executed = {
        re.sub(r"_v\d$", "", one.operation)
        for suite in found
        for kernel in assemble(suite.ptx).kernels
        for one in kernel.code
    }
    return len(known), dict(sorted(Counter(name.partition("_")[0] for name in known - executed).items()))


def measured() -> dict[str, dict[str, str]]:
    """By suite and form, what an H200 gets otherwise, if anything; products were captured before the others."""
    products = json.loads(PRODUCTS_ON_GPU.read_text(encoding="utf-8"))
    found = {"`wgmma`": {one["form"]: f"{one['differs']} values differ" if one["differs"] else "" for one in products}}
    suites = json.loads(ON_GPU.read_text(encoding="utf-8")) if ON_GPU.is_file() else {}
    return found | {name: {form: row["why"] for form, row in rows.items()} for name, rows in suites.items()}


def otherwise(measured: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The forms with which an H200 does not agree: those of which ptxas makes something else, then others."""
    differing = {form: why for rows in measured.values() for form, why in rows.items() if why}
    assembled = [form for form, why in differing.items() if as_ptxas_makes_it(form, why)]
    others = [f"- `{form}`: {why}" for form, why in differing.items() if form not in assembled]
    if not differing:
        return []
    rows = [f"| `{form}` | {_first(differing[form])} |" for form in assembled]
    return [
        f"An H200 does not agree with {len(differing)} forms. Of {len(assembled)} ptxas 13.0 makes machine code that",
        "does not do what the PTX ISA says: read by hand, it gives what the H200 gave, of as many values. The emulator",
        "does what the ISA says.",
        "",
        *(["| form | of its values |", "|---|---|", *rows, ""] if rows else []),
        *(["Others:", "", *others, ""] if others else ["Otherwise no form differs.", ""]),
    ]


def _first(why: str) -> str:
    """How many values differ, and the first of them."""
    return why.rpartition("says: ")[2].partition(";")[0]


def page() -> str:
    """Run the vectors, read the calibration, and write all of it down."""
    found = suites()
    known, missing = without_vectors(found)
    on_h200 = measured()
    differing = otherwise(on_h200)
    programs = {case.run.case: case.program for case in read_capture().cases}
    errors = case_errors(CALIBRATION.read_text(encoding="utf-8"))
    return "\n".join(
        [
            _HEAD,
            "## PTX vectors",
            "",
            *vector_table(found, on_h200),
            "",
            *differing,
            f"They execute {known - sum(missing.values())} of the core's {known} operations of lanes and memory.",
            "How many of each family have no vector here:",
            f"{', '.join(f'`{name}` {count}' for name, count in missing.items()) or 'none'}.",
            "",
            "## Errors per class of kernel",
            "",
            f"{len(errors)} cases beside an H200, in the order of their median error of time. A class is a program of",
            "`tests/conformance/kernels`; a factor of 1.2 is 1.2 times too much or too little; counters are medians of",
            "relative errors, each rounded to a percent, with nothing where there is nothing to count.",
            "",
            *class_table(errors, programs),
            "",
            "## How far times are from the goal",
            "",
            f"The goal is a Spearman correlation of {GOAL_SPEARMAN} and a factor of {GOAL_FACTOR} at kernels that the",
            "project did not write. The judging half was written for it, and nothing was fitted to it; kernels that",
            "were written for speed have the next section. Programs that were captured last have shown what to mend:",
            "[before that](emulator_calibration.md#programs-that-the-model-had-not-seen) the model was worse at them.",
            "",
            *goal_lines(errors),
            "",
            *section(),
            "## Small launches",
            "",
            "Launches of `small_launches.cu` beside the same under Nsight Compute on an H200: median and worst error",
            "of what goes through L2 and DRAM, where less than 10,000 sectors and 2 MB count as that much. How many",
            "SMs ask the L2 together was read off `read_together`.",
            "",
            *traffic_table(launches("traffic")),
            "",
            "Sums of 16-bit floats at few and many words: median and worst factor. How often such a sum is tried",
            "again, and what one costs, was read off these launches.",
            "",
            *sums_table(launches("atomics")),
            "",
            "## Speed",
            "",
            "Depends on the machine: [emulator.md](emulator.md#speed) has the table with its conditions, by",
            "`python benchmarks/ptxemu/emulated_speed.py`.",
            "",
        ]
    )


def on_gpu(file: Path) -> None:
    """Run the vectors on the GPU of this machine; write, after each suite, of each form why it does not hold."""
    from gpu_driver import run_on_gpu

    rows: dict[str, dict[str, dict[str, str | int]]] = {}
    for suite in suites():
        start = time.monotonic()
        there = run_on_gpu(suite.head, suite.kernels, suite.launches)
        took, here = time.monotonic() - start, emulated_arrays(suite)
        found = [gpu_row(suite, number, *both) for number, both in enumerate(zip(there, here, strict=True))]
        rows[suite.name] = dict(zip(suite.forms, found, strict=True))
        file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        wrong = {form: row["why"] for form, row in rows[suite.name].items() if row["why"]}
        print(f"{suite.name}: {len(wrong)} of {len(suite.forms)} do not hold; {took:.0f} s on the GPU", flush=True)
        for form, why in list(wrong.items())[:TOLD]:
            print(f"  {form}: {why[:200]}", flush=True)


def gpu_row(suite: Suite, number: int, ran: Ran, emulated: list[np.ndarray]) -> dict[str, str | int]:
    """Why a form does not hold on the GPU (empty when it does), and how many of its values have the emulator's bits."""
    bits = emulated[suite.result].view(f"u{emulated[suite.result].itemsize}")
    if ran.failure:
        return {"why": ran.failure, "same": 0, "of": bits.size}
    same = int((bits == ran.arrays[suite.result].view(bits.dtype)).sum())
    return {"why": suite.against_gpu(number, ran.arrays, emulated), "same": same, "of": bits.size}


def main() -> None:
    """The page, or a GPU's part of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=("page", "gpu"), default="page")
    parser.add_argument("file", nargs="?", type=Path, help="page: where it goes; gpu: what is written")
    options = parser.parse_args()
    if options.action == "gpu":
        on_gpu(options.file or ON_GPU)
    else:
        (options.file or PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
