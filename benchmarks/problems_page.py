"""Makes docs/problems.md: every problem of a data set, how its start was judged, and what was mended.

    kernelblaster problems check --workload full --precision fp16 --records FILE
    python benchmarks/problems_page.py FILE... > docs/problems.md
    python benchmarks/problems_page.py --dataset kernrl FILE... > docs/environment_problems.md

Verdicts and times come from the records alone; what none of them holds has not run.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelblaster.config.schema import DATASET
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.problems.tags import HELD_OUT
from kernelblaster.runs.problem_checks import CheckRecord, problem_digest, read_checks

SPLIT = (
    "{count} problems: {levels}. The fixed split holds out every problem with {held}: {train} to learn from "
    "(`--split train`), {heldout} held out (`--split heldout`)."
)
SHORT_US = 5.0
HEAD = """# Problems

Made by `benchmarks/problems_page.py` of the data set and of what `kernelblaster problems check` has recorded.

{split}

Times are those of the starting kernels, which are plain and slow on purpose: median of the whole call with a cold L2,
in microseconds, with its 95 % interval. A dash has not run; `stale` stands for files that have changed since.
"""


def columns(records: Sequence[CheckRecord]) -> list[tuple[str, str, str]]:
    """(device, precision, workload) of the records, GPUs first; emulated ones are verdicts and no times."""
    found = {(one.device, str(one.precision), one.workload, one.device_kind) for one in records}
    return [one[:3] for one in sorted(found, key=lambda it: (it[3] is DeviceKind.EMULATED, it[0], it[2], it[1]))]


def cell(record: CheckRecord | None, digest: str) -> str:
    """How one start was judged."""
    if record is None:
        return "-"
    if record.digest != digest:
        return "stale"
    if not record.passed:
        return f"**{record.verdict}**"
    if record.modelled or record.median_us is None:
        return "correct"
    return f"{record.median_us:.1f} [{record.low_us:.1f}, {record.high_us:.1f}]"


def table(problems: Sequence[Problem], records: Sequence[CheckRecord]) -> Iterator[str]:
    """One row per problem."""
    names = columns(records)
    known = {(one.problem, one.device, str(one.precision), one.workload): one for one in records}
    heads = [f"{device}, {precision}, {workload}" for device, precision, workload in names]
    yield "| " + " | ".join(["problem", "tags", "split", *heads]) + " |"
    yield "|" + "---|" * (3 + len(heads))
    for problem in problems:
        digest = problem_digest(problem, read_start(problem))
        cells = [cell(known.get((str(problem.id), *name)), digest) for name in names]
        name = f"{problem.id.number} {problem.name}"
        yield "| " + " | ".join([name, ", ".join(problem.tags), str(problem.split), *cells]) + " |"


def page(problems: Sequence[Problem], records: Sequence[CheckRecord]) -> Iterator[str]:
    """The whole page."""
    levels = sorted({problem.id.level for problem in problems})
    counts = {level: sum(problem.id.level == level for problem in problems) for level in levels}
    parts = [problem.split for problem in problems]
    told = SPLIT.format(
        count=len(problems),
        levels=", ".join(f"{count} of level {level}" for level, count in counts.items()),
        held=", ".join(sorted(HELD_OUT)),
        train=sum(part == "train" for part in parts),
        heldout=sum(part == "heldout" for part in parts),
    )
    yield HEAD.format(split=textwrap.fill(told, 120))
    for level in levels:
        yield f"## Level {level}\n"
        yield from table([problem for problem in problems if problem.id.level == level], records)
        yield ""
    yield from launch_bound(records)
    yield "## What is mended of the published form\n"
    for problem in problems:
        if problem.mends:
            yield f"- {problem.id.level}/{problem.id.number} {problem.name}: {problem.mends}"


def launch_bound(records: Sequence[CheckRecord]) -> Iterator[str]:
    """Problems whose start at full size is so short that its launch is what is measured."""
    short = [
        f"- {one.problem} {one.name}, {one.precision}: {one.median_us:.1f} us on {one.device}"
        for one in records
        if one.workload == StandardWorkload.FULL and not one.modelled and (one.median_us or SHORT_US) < SHORT_US
    ]
    if short:
        yield from ("## Launch-bound at full size\n", *short, "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path)
    parser.add_argument("--dataset", default=DATASET, help="name of a shipped data set")
    given = parser.parse_args()
    records = [record for path in given.records for record in read_checks(path)]
    print("\n".join(page(Dataset(data_dir() / given.dataset).problems(), records)))


if __name__ == "__main__":
    main()
