"""What came of the search, beside PyTorch: rows, and docs/results/forty/results.md.

A row is a problem. Its time is that of the final kernel as the search measured it last, or of the start where nothing
beat it; PyTorch's is the fastest of its modes, from the times that ship. A problem whose search has not ended stands
there as it is: with the time of its start, and marked. Without any correct kernel its ratio is 1. Where a later search
ended with a kernel, what that one measured last counts, whether it is faster than what the first measured or slower.
Where kernel and PyTorch were timed in turns in one sitting (`sitting.py`), the ratio of that sitting counts, or that of
a mode which it left out and which is faster by the times that ship, and its interval says whether the kernel is faster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from problems import NAMES, RESULTS, shipped
from pydantic import BaseModel

from kernelblaster.agent.events import Evaluated, StartProfiled
from kernelblaster.agent.files import StoredSweep
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, times_on
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.records.baselines import BaselineRow, Ratio
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import FINAL_KERNEL, JOURNAL, RunLayout
from kernelblaster.records.rows import fastest_reply_us
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.records.whole_run import recall
from kernelblaster.runs.pytorch_baseline import FINAL
from kernelblaster.storage.records import read_records

GOALS = {1: 1.5, 2: 1.8, 3: 1.5}
"""Geometric mean over the fastest of PyTorch's modes, by level."""
SHARE_GOAL = 0.9
"""Of the problems, those that should be faster than all of them."""
NEAR = 0.06
"""How far from 1 a ratio of two sittings may be that says nothing: sittings differ by more than their intervals."""
MODES = (TorchMode.EAGER, TorchMode.COMPILE, TorchMode.MAX_AUTOTUNE, TorchMode.REDUCE_OVERHEAD)
SITTING = RESULTS / "sitting.jsonl"
Times = Callable[[str, DeviceFacts], PytorchTimes | None]


class NearRow(BaseModel):
    """A problem's kernel in turns with PyTorch; `kernel` as that of its `Row`."""

    kernel: str
    times: BaselineRow

    def us(self, implementation: str) -> float:
        """Median time of one of those that were timed. Raises KeyError."""
        return self.times.timings[implementation].median_us

    @property
    def ratio(self) -> Ratio:
        """The fastest of PyTorch's modes over the kernel. Raises ValueError where either has no time."""
        if not self.times.final_against:
            raise ValueError(f"{self.times.problem} has no ratio: {self.times.failures}")
        return min(self.times.final_against.values(), key=lambda one: one.speedup)


@dataclass(frozen=True)
class Row:
    """A problem: times in microseconds; None where there are none.

    Attributes:
        name: `level1/023`.
        title: what it computes.
        status: of its search.
        start_us: of the starting kernel.
        so_far_us: of the fastest reply that was accepted, by the comparison of its step; None without one.
        final_us: of the final kernel, measured again; None where nothing beat the start, or the search has not ended.
        pytorch_us: by mode.
        replies: that were judged, those of later searches among them.
        again_us: of the final kernel of the last later search that ended with one; None without.
        kernel: digest of the final kernel that counts; empty where nothing beat the start.
        near: what one sitting says of that kernel; None where it was not timed so.
    """

    name: str
    title: str
    status: OutcomeStatus
    start_us: float | None
    so_far_us: float | None
    final_us: float | None
    pytorch_us: dict[TorchMode, float]
    replies: int
    again_us: float | None = None
    kernel: str = ""
    near: NearRow | None = None

    @property
    def level(self) -> int:
        return int(self.name[len("level")])

    @property
    def ended(self) -> bool:
        """Whether its search has ended for good."""
        return self.status in (OutcomeStatus.IMPROVED, OutcomeStatus.NO_IMPROVEMENT, OutcomeStatus.FAILED)

    @property
    def fastest(self) -> tuple[TorchMode, float]:
        """PyTorch's best. Raises ValueError where it was not timed."""
        mode = min(self.pytorch_us, key=lambda one: self.pytorch_us[one])
        return mode, self.pytorch_us[mode]

    @property
    def own_us(self) -> float | None:
        """What counts as its time: the final kernel's, else the fastest so far, else the start's."""
        return self.again_us or self.final_us or (None if self.ended else self.so_far_us) or self.start_us

    @property
    def ratio(self) -> float:
        """The fastest of PyTorch's modes over its own time; 1 without a correct kernel."""
        if self.near is not None:
            return min([self.near.ratio.speedup, *self._left_out])
        return two_sittings(self) or 1.0

    @property
    def _left_out(self) -> list[float]:
        """Ratios of modes that were not in turns and are, by the times that ship, faster than those that were."""
        if self.near is None:
            return []
        timed, own = self.near.times.timings, self.near.us(FINAL)
        least = min((us for mode, us in self.pytorch_us.items() if mode in timed), default=math.inf)
        return [us / own for mode, us in self.pytorch_us.items() if mode not in timed and us < least]

    @property
    def faster(self) -> bool:
        """Whether it is faster than all of PyTorch's modes: beyond its interval in turns, or `NEAR` in two sittings."""
        if self.near is not None:
            return self.near.ratio.low > 1 and all(ratio > 1 + NEAR for ratio in self._left_out)
        return self.ratio > 1 + NEAR


def two_sittings(row: Row) -> float | None:
    """The ratio of the search's own measurement and of PyTorch's times as they ship; None without a correct kernel."""
    return None if row.own_us is None else row.fastest[1] / row.own_us


def shipped_times_of(name: str, facts: DeviceFacts) -> PytorchTimes | None:
    """PyTorch's times of a problem at `full` in fp16 on this GPU, as they ship."""
    problem = shipped(name)
    return times_on(facts, problem, problem.precision_for(Precision.FP16), StandardWorkload.FULL)


def rows_of(
    layouts: Sequence[RunLayout], *, names: Sequence[str] = NAMES, times: Times = shipped_times_of
) -> list[Row]:
    """A row for each problem, in order, of the first search and later ones. Raises UsageError where there is no run."""
    layout, *later = layouts
    summary = recall(layout)
    known = {row.problem: row for row in summary.problems}
    rows = [_row(layout, name, known.get(name), times(name, summary.device)) for name in names]
    for again in later:
        found = {row.problem: row for row in recall(again).problems}
        rows = [_with_later(row, _row(again, row.name, found.get(row.name), None)) for row in rows]
    near = {(one.times.problem, one.kernel): one for one in read_records(SITTING, NearRow)}
    return [replace(row, near=near.get((row.name, row.kernel))) for row in rows]


def _with_later(row: Row, later: Row) -> Row:
    row = replace(row, replies=row.replies + later.replies)
    return row if later.final_us is None else replace(row, again_us=later.final_us, kernel=later.kernel)


def _row(layout: RunLayout, name: str, found: ProblemSummary | None, times: PytorchTimes | None) -> Row:
    pytorch = {mode: time.us for mode, time in times.times.items() if mode in MODES} if times else {}
    problem = shipped(name)
    if found is None:
        return Row(name, problem.name, OutcomeStatus.INTERRUPTED, None, None, None, pytorch, 0)
    journal = layout.problem(problem) / JOURNAL
    events = read_events(journal) if journal.exists() else []
    told = list({event.identity: event for event in events}.values())
    starts = [event.median_us for event in told if isinstance(event, StartProfiled)]
    comparison = found.comparison
    final = layout.problem(problem) / FINAL_KERNEL
    return Row(
        name=name,
        title=found.name,
        status=found.status,
        start_us=comparison.baseline.median_us if comparison else next(iter(starts), None),
        so_far_us=fastest_reply_us(told),
        final_us=comparison.candidate.median_us if comparison else None,
        pytorch_us=pytorch,
        replies=sum(isinstance(event, Evaluated) for event in told),
        kernel=source_digest(final.read_text(encoding="utf-8")) if final.is_file() else "",
    )


def stage_seconds(layout: RunLayout) -> Counter[str]:
    """Wall seconds of all judgements and sweeps by stage, those that passed side by side added up."""
    total = Counter[str]()
    for directory in layout.problems():
        for path in sorted(directory.glob("evaluations/*.json")):
            total.update(Evaluation.model_validate_json(path.read_bytes()).seconds)
        for path in sorted(directory.glob("sweeps/*.json")):
            stages = StoredSweep.model_validate_json(path.read_bytes()).stages
            total.update({f"sweep: {name}": seconds for name, seconds in stages.items()})
    return total


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of positive numbers, at least one."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


def of_level(rows: Sequence[Row], level: int) -> list[Row]:
    """Those of one level."""
    return [row for row in rows if row.level == level]


def render(rows: Sequence[Row], facts: str) -> str:
    """The page, in Markdown."""
    return "\n".join([*_head(rows, facts), "", *_levels(rows), "", *_table(rows), ""])


def _head(rows: Sequence[Row], facts: str) -> Iterator[str]:
    yield "# Forty problems: results"
    yield ""
    yield "Written by `benchmarks/forty/forty.py table` from `run.tar.xz`; [plan.md](plan.md) says what is counted."
    ended, judged = sum(row.ended for row in rows), sum(row.replies for row in rows)
    yield f"{facts}, fp16, size `full`. {ended} of {len(rows)} searches have ended; {judged} replies were judged."
    if ended < len(rows):
        yield "Searches that have not ended count with the fastest reply so far, timed in the comparison of its step"
        yield "and not again in fresh processes; without one with their starts, and without a measured start as 1."


def _levels(rows: Sequence[Row]) -> Iterator[str]:
    yield "| level | problems | ended | over the fastest of PyTorch, geometric mean | goal | above 1 | faster | goal |"
    yield "|---|---|---|---|---|---|---|---|"
    for level, goal in GOALS.items():
        own = of_level(rows, level)
        if own:
            yield _level(str(level), own, f"{goal}")
    yield _level("all", rows, "")
    yield ""
    largest = max(rows, key=lambda row: row.ratio)
    level, rest = ([row.ratio for row in some if row is not largest] for some in (of_level(rows, largest.level), rows))
    if level:
        yield f"Without {largest.name}, whose ratio is the largest ({largest.ratio:.1f}), level {largest.level} has"
        yield f"{geometric_mean(level):.3f} and all together {geometric_mean(rest):.3f}."


def _level(name: str, rows: Sequence[Row], goal: str) -> str:
    ratios = [row.ratio for row in rows]
    faster = sum(row.faster for row in rows)
    ended, mean = sum(row.ended for row in rows), geometric_mean(ratios)
    above = sum(ratio > 1 for ratio in ratios)
    share = f"{above} ({above / len(rows):.0%}) | {faster} ({faster / len(rows):.0%}) | {SHARE_GOAL:.0%}"
    return f"| {name} | {len(rows)} | {ended} | {mean:.3f} | {goal} | {share} |"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "Times in us of a whole call with a cold L2; PyTorch's are of another sitting, by the same rule. *In turns*:"
    yield "both in one sitting, on a machine with one GPU and alone, with the 95 % interval; where it was measured, it"
    yield "counts in the table above, and the column before it only for modes that the sitting left out."
    yield f"*Faster*: an interval in turns that lies above 1; of what was not in turns a ratio above {1 + NEAR}."
    yield ""
    modes = " | ".join(f"{mode}" for mode in MODES)
    yield f"| problem | start | so far | final | again | {modes} | fastest over ours | in turns | replies | search |"
    yield "|" + "---|" * (9 + len(MODES))
    for row in rows:
        own = " | ".join(map(_us, (row.start_us, row.so_far_us, row.final_us, row.again_us)))
        times = " | ".join(_us(row.pytorch_us.get(mode)) for mode in MODES)
        status = row.status.replace("_", " ") if row.ended else f"not ended ({row.status})"
        ratio = "-" if (two := two_sittings(row)) is None else f"{two:.3f}"
        yield f"| {row.name} {row.title} | {own} | {times} | {ratio} | {_in_turns(row)} | {row.replies} | {status} |"


def _in_turns(row: Row) -> str:
    if row.near is None:
        return "-"
    ratio = row.near.ratio
    return f"{ratio.speedup:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _us(time: float | None) -> str:
    return "-" if time is None else f"{time:.1f}"
