"""Makes docs/problems.md: every problem of a data set, how its start was judged, and what was mended.

    kernelblaster problems check --workload full --precision fp16 --records FILE
    python benchmarks/problems_page.py [FILE...] --output docs/problems.md
    python benchmarks/problems_page.py --dataset kernrl FILE... --output docs/environment_problems.md

Verdicts and times come from the records, those that are kept among them (`KEPT`, and for KernelBench's problems what
ships below `data/baselines`), and where these say nothing from the page that is replaced: what it says of a problem
stays, `stale` if the problem's files have changed since the page was committed. A record speaks for the very files
that were judged: reference, harness, and the start with the shared pieces that it uses.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kernelblaster.config.schema import DATASET
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.notes import ProblemNotes, read_notes
from kernelblaster.problems.problem import Problem, StandardWorkload
from kernelblaster.problems.reference import reference_digest
from kernelblaster.problems.start import read_start
from kernelblaster.problems.tags import HELD_OUT
from kernelblaster.runs.check_records import CheckRecord, problem_digest, read_checks, shipped_checks
from kernelblaster.runs.problem_audits import CHECKS, AuditRecord, audit_digest, read_audits

SPLIT = (
    "{count} problems: {levels}. The fixed split holds out every problem with {held}: {train} to learn from "
    "(`--split train`), {heldout} held out (`--split heldout`)."
)
KEPT = Path(__file__).parents[1] / "docs" / "results" / "problem_checks"
"""Folder of outcomes of `problems check` and of `problems audit`; the data sets share problems, and so files."""
AUDITS = "audits.jsonl"
"""End of the names of those of audits."""
SHORT_US = 5.0
NAMING = 3
"""Columns of a table before those of verdicts."""
NAMED = 3
"""Things that a kernel may leave out, of those in one line."""
_LEFT_OUT = re.compile(r"(a kernel (?:that ignores|without) )(.+)( passes in \w+)")
UNKNOWN, STALE = "-", "stale"
HEAD = """# Problems

Made by `benchmarks/problems_page.py` of the data set and of what `kernelblaster problems check` has recorded.

{split}

Times are those of the starting kernels, which are plain and slow on purpose: median of the whole call with a cold L2,
in microseconds, with its 95 % interval. A dash has not run; `stale` stands for files that have changed since.
A size without a column has not been judged. `v0` is declared by those whose shapes differed in KernelBench's first
release.
"""
DRAWN = (
    "Scales and shifts of normalisations begin at 1 and 0 in the published form, where a kernel that leaves them out "
    "is right. In every problem that has some they are drawn about 1 and 0 here."
)


@dataclass(frozen=True)
class Column:
    """Under what the starts of a column were judged."""

    device: str
    precision: str
    workload: str

    @classmethod
    def of(cls, record: CheckRecord) -> Self:
        return cls(record.device, str(record.precision), record.workload)

    @classmethod
    def headed(cls, head: str) -> Self:
        """The inverse of `str`."""
        return cls(*head.rsplit(", ", 2))

    def __str__(self) -> str:
        return f"{self.device}, {self.precision}, {self.workload}"

    @property
    def order(self) -> tuple[bool, str, str, str]:
        """GPUs first; emulated ones are verdicts and no times."""
        return "(emulated)" in self.device, self.device, self.workload, self.precision


@dataclass(frozen=True)
class EarlierPage:
    """What the page that is replaced says.

    Attributes:
        columns: of its tables.
        cells: by level, number and column.
        changed: paths of files below the data set that differ from the commit in which the page changed last.
    """

    columns: frozenset[Column] = frozenset()
    cells: dict[tuple[int, int, Column], str] = field(default_factory=dict)
    changed: tuple[Path, ...] = ()

    @classmethod
    def read(cls, path: Path, dataset: Path) -> Self:
        """Raises CalledProcessError when git does not know the page."""
        columns: list[Column] = []
        cells: dict[tuple[int, int, Column], str] = {}
        level = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            parts = [part.strip() for part in line.strip("|").split("|")]
            if line.startswith("## Level "):
                level = int(line.removeprefix("## Level "))
            elif line.startswith("| problem |"):
                columns = [Column.headed(head) for head in parts[NAMING:]]
            elif line.startswith("| "):
                number = int(parts[0].split()[0])
                cells |= {(level, number, column): cell for column, cell in zip(columns, parts[NAMING:], strict=True)}
        root = Path(_git(dataset, "rev-parse", "--show-toplevel").strip())
        commit = _git(root, "log", "-1", "--format=%H", "--", str(path.resolve())).strip()
        names = _git(root, "diff", "--name-only", commit, "--", str(dataset)).splitlines()
        return cls(frozenset(columns), cells, tuple(root / name for name in names))

    def cell(self, problem: Problem, column: Column) -> str:
        """What it says of a problem; `stale` if that was said of other files."""
        said = self.cells.get((problem.id.level, problem.id.number, column), UNKNOWN)
        if said != UNKNOWN and any(problem.reference_path.parent in path.parents for path in self.changed):
            return STALE
        return said


def _git(folder: Path, *command: str) -> str:
    return subprocess.run(["git", "-C", folder, *command], check=True, capture_output=True, text=True).stdout


def cell(record: CheckRecord) -> str:
    """How one start was judged."""
    if not record.passed:
        return f"**{record.verdict}**"
    if record.modelled or record.median_us is None:
        return "correct"
    return f"{record.median_us:.1f} [{record.low_us:.1f}, {record.high_us:.1f}]"


def table(problems: Sequence[Problem], records: Sequence[CheckRecord], earlier: EarlierPage) -> Iterator[str]:
    """One row per problem."""
    columns = sorted({*map(Column.of, records), *earlier.columns}, key=lambda one: one.order)
    seen: dict[tuple[str, Column], set[str]] = {}
    for one in records:
        seen.setdefault((one.problem, Column.of(one)), set()).add(cell(one))
    known = {(one.problem, one.digest, Column.of(one)): cell(one) for one in records}
    yield "| " + " | ".join(["problem", "tags", "split", *map(str, columns)]) + " |"
    yield "|" + "---|" * (NAMING + len(columns))
    for problem in problems:
        digest = problem_digest(problem, read_start(problem))
        cells = []
        for column in columns:
            told = known.get((str(problem.id), digest, column), earlier.cell(problem, column))
            of_others = seen.get((str(problem.id), column), set())
            current = (str(problem.id), digest, column) in known
            cells.append(STALE if of_others and not current and told in {UNKNOWN, *of_others} else told)
        name = f"{problem.id.number} {problem.name}"
        yield "| " + " | ".join([name, ", ".join(problem.tags), str(problem.split), *cells]) + " |"


def page(
    problems: Sequence[Problem],
    records: Sequence[CheckRecord],
    earlier: EarlierPage,
    audits: Sequence[AuditRecord] = (),
) -> Iterator[str]:
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
        yield from table([problem for problem in problems if problem.id.level == level], records, earlier)
        yield ""
    yield from launch_bound(records)
    yield from audited(problems, audits)
    notes = {problem: read_notes(problem.directory) for problem in problems}
    yield "## What is mended of the published form\n"
    yield textwrap.fill(DRAWN, 120) + "\n"
    for problem in problems:
        told = " ".join(filter(None, [problem.mends, notes[problem].published]))
        if told:
            yield f"- {problem.id.level}/{problem.id.number} {problem.name}: {told}"
    yield from inert(notes)


def inert(notes: Mapping[Problem, ProblemNotes]) -> Iterator[str]:
    """What is part of the published form and does nothing, for whatever input."""
    if not any(found.inert for found in notes.values()):
        return
    yield "\n## What does nothing and stays\n"
    yield textwrap.fill(
        "Bounds and branches of KernelBench's that no input reaches. A kernel that leaves them out is right, and "
        "judged so; the audit names all others that the judge would not miss.",
        120,
    )
    yield ""
    for problem, found in notes.items():
        for branch, why in found.inert.items():
            yield f"- {problem.id.level}/{problem.id.number} {problem.name}, {branch}: {why}."


def audited(problems: Sequence[Problem], audits: Sequence[AuditRecord]) -> Iterator[str]:
    """What the audit says of the references as they are now; nothing where there are no records."""
    if not audits:
        return
    found = [(problem, _audit_of(problem, audits)) for problem in problems]
    sound = sum(record is not None and not record.faults for _, record in found)
    yield "## Audit\n"
    yield textwrap.fill(
        "`kernelblaster problems audit` asks whether the reference varies with every input and weight, whether outputs "
        "lie far above the tolerance, and whether zeros, constants, copies, the result of other inputs, or kernels "
        "without half of a tensor, the signs of an input, a bound or a branch of an activation would pass, in each "
        f"precision: {sound} of {len(problems)} problems are sound.",
        120,
    )
    yield ""
    exceptions = [
        f"- {problem.id.level}/{problem.id.number} {problem.name}: {fault}"
        for problem, record in found
        if record is not None
        for fault in _together(record.faults)
    ]
    earlier = [f"{p.id.level}/{p.id.number}" for p, record in found if record is not None and record.checks < CHECKS]
    if earlier:
        exceptions.append(
            textwrap.fill(f"Audited before halves, signs and branches were looked at: {', '.join(earlier)}.", 120)
        )
    missing = [f"{problem.id.level}/{problem.id.number}" for problem, record in found if record is None]
    if missing:
        exceptions.append(textwrap.fill(f"Not audited as they are: {', '.join(missing)}.", 120))
    if exceptions:
        yield from (*exceptions, "")


def _together(faults: Sequence[str]) -> Iterator[str]:
    """Faults, those in one line that differ in what a kernel leaves out alone."""
    groups: dict[tuple[str, str], list[str]] = {}
    for fault in faults:
        parts = _LEFT_OUT.fullmatch(fault)
        groups.setdefault((parts[1], parts[3]) if parts else (fault, ""), []).extend([parts[2]] if parts else [])
    for (before, after), names in groups.items():
        more = len(names) - NAMED
        shown = [*names[:NAMED], *([f"one of {more} more"] if more > 0 else [])]
        yield f"{before}{' or '.join(filter(None, (', '.join(shown[:-1]), *shown[-1:])))}{after}"


def _audit_of(problem: Problem, audits: Sequence[AuditRecord]) -> AuditRecord | None:
    """The newest record of a problem as it is, of an earlier version of the audit where there is no other."""
    for checks, digest in ((CHECKS, audit_digest(problem)), (1, reference_digest(problem))):
        for one in reversed(audits):
            if (one.problem, one.checks, one.digest, one.workload) == (str(problem.id), checks, digest, None):
                return one
    return None


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
    parser.add_argument("--output", type=Path, required=True, help="the page that is replaced")
    given = parser.parse_args()
    dataset = data_dir() / given.dataset
    kept = [path for path in sorted(KEPT.glob("*.jsonl")) if not path.name.endswith(AUDITS)]
    records = [record for path in (*kept, *given.records) for record in read_checks(path)]
    if given.dataset == DATASET:
        records = [*shipped_checks(), *records]
    audits = [audit for path in sorted(KEPT.glob(f"*{AUDITS}")) for audit in read_audits(path)]
    earlier = EarlierPage.read(given.output, dataset) if given.output.exists() else EarlierPage()
    text = "\n".join(page(Dataset(dataset).problems(), records, earlier, audits))
    given.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
