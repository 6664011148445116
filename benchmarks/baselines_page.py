"""Makes docs/baselines.md: what PyTorch and the starts take on a GPU, beside roofline floor and attainable time.

    python benchmarks/baselines_page.py --output docs/baselines.md [--refresh]

Times are those that ship with the data (`data/baselines`), of the files as they are now: PyTorch's by `kernelblaster
problems baseline`, the starts' by `kernelblaster problems check`. With `--refresh` floors and attainable times of these
records are computed anew first: they follow from the problem and the GPU's rates, and not from what was measured.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kernelblaster import known_starts, known_times, list_problems
from kernelblaster.devices.emulated.known_gpus import facts_of
from kernelblaster.evaluation.attainable import attainable
from kernelblaster.evaluation.roofline import floor_us
from kernelblaster.evaluation.timing.pytorch_times import EXPOSED_SHARE, ModeTime, PytorchTimes
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.runs.check_records import SHIPPED, CheckRecord

START = "init.cu"
COLUMNS = (START, *TorchMode)
HOST_BOUND, GRAPH, EXPOSED = " (h)", " (g)", " (e)"
UNKNOWN = "-"
WIDTH = 120
HEAD = """# PyTorch, the starts, and what could be reached

Made by `python benchmarks/baselines_page.py`.

Device time of the whole call in microseconds, median, cold L2, launches hidden behind other work of the GPU; behind it,
in per cent, the share of the attainable time that it reaches. *Floor* is the roofline: no correct kernel is faster.
*Attainable* is what a well-written kernel is expected to reach: the measured copy rate, the measured tensor rate, all
products and convolutions, waves of tiles. Algebra, sparsity or a better algorithm may pass it. The starting kernels
(`init.cu`) are plain and slow on purpose. Intervals, wall times, clocks and versions are in `data/baselines/`, and
`kernelblaster problems show` tells them. Starts are timed in another sitting than PyTorch. Wall times are sampled apart
from device times and after them, of single calls on an idle GPU, behind a flush of the L2, too, and launched by the
host also where the device time is that of a graph; so a few are below the device time of their row, where the GPU's
clock or launches that were not hidden differ between the two samplings.

Of fp32 convolutions PyTorch's times are those of cuDNN in TF32, its default. A kernel has to reach fp32's accuracy, for
which three such products are taken; so these times may be shorter than the attainable ones. Of convolutions with 1 x 1
windows max-autotune makes products, which in fp32 are without TF32: that of 1/87 takes 8.8 ms by Inductor's notes,
eager's convolution 3.4. What else max-autotune makes slower than `compile` by a fifth or more holds such windows, too:
1/86, 3/6, 3/7, 3/10, 3/13, 3/18 to 3/21 and 3/24 to 3/26.

torch.compile's `reduce-overhead` copies inputs into buffers of its CUDA graph in every call, which counts.

Inductor's own clock counts launches: on this host a library's convolution of 10 us is 30 to 70 to it. 93 problems,
which hold the shortest operations, let max-autotune choose again on 2 December 2026, among the kernels of an operation
by the device's clock without launches: 47 became faster, by up to 1.40 times, and 46 did not (the slowest took 1.49
times as long). 55 of them chose a third time, where that clock also told which kernels are fused and how those are
launched: in the geometric mean they take 1.00 of their first time and 1.01 of their second, and between 0.91 and 1.23
of the shorter of both. So what is chosen differs from one time to the next by more than the clock explains. Listed is
the fastest of two or three; the others lie in `data/baselines/h200/choices`. 3/15, 3/16 and 3/30 chose once, by the
device's clock alone; of what is not named here in fp16, by Inductor's. All of this is fp16. In fp32 everything was
chosen by the device's clock alone, of all 203 problems that hold a product or a convolution, and of 1/42. 26 of them
ran again on another machine with an H200, where some of the choices were known: their times differ by up to 0.8 %. 3/7,
3/15, 3/20 and 3/29 were sampled again by other processes, of the same choices, with less beside them: these times are
0.1 to 5.7 % longer. The shorter one is listed here, too.

Marks: **(h)** more than half of the launches were not hidden, so that the time is the host's; **(e)** more than a tenth
were not; **(g)** replayed as a CUDA graph, because the host launches too slowly to be hidden. A dash has not run, or
ran on files that have changed since.
"""


@dataclass(frozen=True)
class Row:
    """One problem on one GPU in one precision at one size; `start` and `pytorch` where they are known.

    Bounds are None on a GPU that nothing is known of.
    """

    problem: Problem
    start: CheckRecord | None
    pytorch: PytorchTimes | None
    floor_us: float | None
    attainable_us: float | None

    @classmethod
    def of(
        cls,
        problem: Problem,
        where: tuple[str, Precision, str],
        starts: Sequence[CheckRecord],
        times: Sequence[PytorchTimes],
    ) -> Self:
        """From what is known of a problem anywhere; `where` are GPU, precision and size. Raises ProblemError."""
        gpu, precision, workload = where
        start = next((it for it in starts if (it.device, it.precision) == (gpu, precision)), None)
        pytorch = next((it for it in times if (it.gpu, it.precision) == (gpu, precision)), None)
        for known in (pytorch, start):
            if known is not None and known.attainable_us is not None:
                return cls(problem, start, pytorch, known.floor_us, known.attainable_us)
        facts = facts_of(gpu)
        if facts is None or workload not in problem.workloads:
            return cls(problem, start, pytorch, None, None)
        bounds = floor_us(problem, workload, precision, facts), attainable(problem, workload, precision, facts).us
        return cls(problem, start, pytorch, *bounds)

    def time(self, column: str) -> float | None:
        """Microseconds of a column, if it has run."""
        if column == START:
            return None if self.start is None else self.start.median_us
        found = self.mode(column)
        return None if found is None else found.us

    def mode(self, column: str) -> ModeTime | None:
        """What is known of a mode of PyTorch."""
        return None if self.pytorch is None or column == START else self.pytorch.times.get(TorchMode(column))

    def share(self, column: str) -> float | None:
        """Attainable time over a column's."""
        us = self.time(column)
        return None if us is None or self.attainable_us is None else self.attainable_us / us


@dataclass(frozen=True)
class Section:
    """All problems on one GPU in one precision at one size."""

    gpu: str
    precision: Precision
    workload: str
    rows: Sequence[Row]

    def lines(self) -> Iterator[str]:
        """Heading, summary and table."""
        yield f"## {self.gpu}, {self.precision}, {self.workload}\n"
        yield textwrap.fill(" ".join([*self._versions(), *self._summary()]), WIDTH)
        yield ""
        shown = [column for column in COLUMNS if any(row.time(column) is not None for row in self.rows)]
        yield "| " + " | ".join(["problem", "floor", "attainable", *shown]) + " |"
        yield "|---" + "|---:" * (2 + len(shown)) + "|"
        for row in self.rows:
            number = f"{row.problem.id.level}/{row.problem.id.number}"
            cells = [number_of(row.floor_us), number_of(row.attainable_us), *(cell(row, column) for column in shown)]
            yield "| " + " | ".join([f"{number} {row.problem.name}", *cells]) + " |"
        yield ""

    def _versions(self) -> Iterator[str]:
        found = Counter(
            f"PyTorch {row.pytorch.torch}, driver {row.pytorch.driver}, {_tf32(row.pytorch)}"
            for row in self.rows
            if row.pytorch is not None
        )
        for told, count in found.most_common():
            yield f"{told}{'' if len(found) == 1 else f' ({count})'}."

    def _summary(self) -> Iterator[str]:
        for column in COLUMNS:
            shares = [share for row in self.rows if (share := row.share(column)) is not None]
            if shares:
                mean = math.exp(sum(map(math.log, shares)) / len(shares))
                yield f"{column}: {len(shares)} of {len(self.rows)}, {mean:.0%} of attainable in the geometric mean."
        marks = Counter(mark for row in self.rows for column in COLUMNS if (mark := marked(row.mode(column))))
        told = [f"{count}{mark}" for mark, count in sorted(marks.items())]
        if told:
            yield f"Marks: {', '.join(told)}."


def cell(row: Row, column: str) -> str:
    """Time and share of one column."""
    us, share = row.time(column), row.share(column)
    told = "" if share is None else f" {share:.0%}"
    return f"{number_of(us)}{told}{marked(row.mode(column))}"


def marked(time: ModeTime | None) -> str:
    """What a reader must know of a mode's launches."""
    if time is None:
        return ""
    if time.host_bound:
        return HOST_BOUND
    if time.exposed_share > EXPOSED_SHARE:
        return EXPOSED
    return GRAPH if time.graph else ""


def number_of(us: float | None) -> str:
    """Microseconds, to four digits or so."""
    if us is None:
        return UNKNOWN
    return f"{us:,.0f}" if us >= 1000 else f"{us:.1f}" if us >= 10 else f"{us:.2f}"


def _tf32(row: PytorchTimes) -> str:
    if row.settings is None:
        return "TF32 unknown"
    matmul, cudnn = ("on" if used else "off" for used in (row.settings.tf32_matmul, row.settings.tf32_cudnn))
    return f"TF32 {matmul} in products and {cudnn} in cuDNN"


def sections(problems: Sequence[Problem], workloads: Sequence[str]) -> Iterator[Section]:
    """A section for each GPU, precision and size in which PyTorch was timed."""
    for workload in workloads:
        times = {problem: known_times(problem, size=workload) for problem in problems}
        starts = {problem: known_starts(problem, size=workload) for problem in problems}
        timed = {(row.gpu, row.precision) for rows in times.values() for row in rows}
        for gpu, precision in sorted(timed, key=lambda one: (one[0], list(Precision).index(one[1]))):
            where = (gpu, precision, workload)
            rows = [Row.of(problem, where, starts[problem], times[problem]) for problem in problems]
            yield Section(gpu, precision, workload, rows)


def page(problems: Sequence[Problem], workloads: Sequence[str]) -> Iterator[str]:
    """The whole page."""
    yield HEAD
    for section in sections(problems, workloads):
        yield from section.lines()


def refresh(path: Path, kind: type[PytorchTimes] | type[CheckRecord], problems: Mapping[str, Problem]) -> int:
    """Compute floors and attainable times of a file of records anew; how many changed. Raises ProblemError."""
    lines, changed = [], 0
    for line in path.read_text(encoding="utf-8").splitlines():
        record = kind.model_validate_json(line)
        facts = facts_of(record.gpu if isinstance(record, PytorchTimes) else record.device)
        problem = problems.get(record.problem)
        if facts is not None and problem is not None and record.workload in problem.workloads:
            asked = (problem, record.workload, record.precision, facts)
            bounds = {
                name: float(f"{us:.6g}")
                for name, us in (("floor_us", floor_us(*asked)), ("attainable_us", attainable(*asked).us))
            }
            changed += any(getattr(record, name) != value for name, value in bounds.items())
            record = record.model_copy(update=bounds)
        lines.append(record.model_dump_json())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the page that is replaced")
    parser.add_argument("--refresh", action="store_true", help="compute bounds in the records that ship anew")
    given = parser.parse_args()
    if given.refresh:
        problems = {str(problem.id): problem for problem in list_problems()}
        shipped = data_dir() / "baselines"
        for pattern, kind in (("*/*.jsonl", PytorchTimes), (f"*/{SHIPPED}/*.jsonl", CheckRecord)):
            for path in sorted(shipped.glob(pattern)):
                print(f"{path}: {refresh(path, kind, problems)} records changed")
    text = "\n".join(page(list_problems(), [*StandardWorkload]))
    given.output.write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
