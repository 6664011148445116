"""What the templates are given: the page, and each problem's part of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.config import ModelKind
from kernelblaster.evaluation.results import Timing, Verdict
from kernelblaster.records.baselines import BaselineRow
from kernelblaster.records.summary import ProblemSummary, RunSummary
from kernelblaster.report.code import Diff, HotKernel, hot_kernels, side_by_side
from kernelblaster.report.costs import Cost, money, total
from kernelblaster.report.counters import CounterRow, counters
from kernelblaster.report.lessons import LessonsView, lessons_view
from kernelblaster.report.packing import PackRoom, TextPack
from kernelblaster.report.part_rows import PartRow, SilentPart, part_rows, silent_parts
from kernelblaster.report.parts import parts_account
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.roofline import Roofline, roofline
from kernelblaster.report.scales import microseconds, short, times
from kernelblaster.report.search_tree import SearchTree, search_tree
from kernelblaster.report.steps import StepView, step_views
from kernelblaster.report.sweeps import SweepView, sweep_views
from kernelblaster.report.techniques import TechniqueTable, technique_table
from kernelblaster.report.winning_path import PathStep, winning_path

SHIPPED_TOLD = (
    "PyTorch's times ship with KernelBlaster: measured on the same model of GPU, not in turns with these two kernels."
)
ATTAINABLE_TOLD = (
    "Attainable: an estimate of what a well-written kernel reaches: the bytes that must move at the rate of a copy, or "
    "all products and convolutions at the rate of the best libraries, and a launch. A better algorithm may pass it."
)


@dataclass(frozen=True)
class ResultRow:
    """One problem in the table of results. `bar` is the width of the speed-up's bar in percent."""

    anchor: str
    problem: str
    name: str
    status: str
    status_class: str
    start: str
    final: str
    speedup: str
    interval: str
    share: str
    """Of the attainable speed, or of the roofline floor's where that alone is known, that the last kernel reaches."""
    bar: float
    told: str
    account: str
    """Where the speed-up came from, where a part of it was recalled; else empty."""
    verdicts: str
    cost: Cost
    """Of the replies of its steps."""
    gain: float
    """ln of the speed-up that they brought."""

    @property
    def each(self) -> Cost | None:
        """For each doubling of speed; None where there was no gain."""
        return self.cost.per_doubling(self.gain)


@dataclass(frozen=True)
class TimeBar:
    """The time of one implementation; `width` in percent of the longest, `kind` for its colour."""

    name: str
    text: str
    width: float
    kind: str


@dataclass(frozen=True)
class ProblemView:
    """One problem's part of the page; parts for which nothing was recorded are None or empty."""

    row: ResultRow
    hint: str
    tree: SearchTree | None
    roofline: Roofline | None
    counters: tuple[CounterRow, ...]
    diff: Diff | None
    path: tuple[PathStep, ...]
    """What each step on the way to the final kernel changed; empty where there is one alone."""
    hot_before: tuple[HotKernel, ...]
    hot_after: tuple[HotKernel, ...]
    workload: str
    times: tuple[TimeBar, ...]
    attainable_told: str
    """What the attainable time is; empty where there is none."""
    pytorch: tuple[TimeBar, ...]
    pytorch_told: str
    sweeps: tuple[SweepView, ...]
    lessons: LessonsView | None
    steps: tuple[StepView, ...]
    texts: str
    """Packed; empty where there was no room."""


@dataclass(frozen=True)
class Tile:
    """A figure in the head of the page."""

    value: str
    name: str


@dataclass(frozen=True)
class Page:
    """The whole page."""

    summary: RunSummary
    kind: str
    """`modelled` or `measured`."""
    author: str
    headline: str
    headline_told: str
    tiles: tuple[Tile, ...]
    rows: tuple[ResultRow, ...]
    techniques: TechniqueTable | None
    parts: tuple[PartRow, ...]
    silent: tuple[SilentPart, ...]
    """Parts of the search without a line among `parts`."""
    problems: tuple[ProblemView, ...]


def make_page(summary: RunSummary, records: Sequence[ProblemRecord]) -> Page:
    """The page of a run."""
    kind = "modelled" if summary.emulated else "measured"
    best = max((row.comparison.speedup for row in summary.problems if row.comparison), default=1.0)
    rows = tuple(_row(record, best) for record in records)
    room = PackRoom()
    headline, told = _headline(summary, kind)
    account = parts_account(records)
    return Page(
        summary=summary,
        kind=kind,
        author="a recording" if summary.model_kind == ModelKind.RECORDED else summary.model,
        headline=headline,
        headline_told=told,
        tiles=tuple(_tiles(summary)),
        rows=rows,
        techniques=technique_table(records),
        parts=part_rows(account),
        silent=silent_parts(account),
        problems=tuple(_problem(record, row, summary, room) for record, row in zip(records, rows, strict=True)),
    )


def _headline(summary: RunSummary, kind: str) -> tuple[str, str]:
    """The one figure, and what it is."""
    improved = [row for row in summary.problems if row.comparison]
    if len(summary.searched) == 1 and improved and improved[0].comparison:
        c = improved[0].comparison
        span = f"{microseconds(c.baseline.median_us)} → {microseconds(c.candidate.median_us)} µs"
        return times(c.speedup), f"{improved[0].name}: {span}, {kind}, against the start"
    if summary.geometric_mean is not None and improved:
        count = f"{len(summary.searched)} problems"
        whole = "all of them improved" if len(improved) == len(summary.searched) else f"{len(improved)} improved"
        rest = "" if len(improved) == len(summary.searched) else ", the others count as 1"
        apart = len(summary.problems) - len(summary.searched)
        unsearched = f"; {apart} more without a result" if apart else ""
        told = f"geometric mean over the starts of {count}, {kind}: {whole}{rest}{unsearched}"
        return times(summary.geometric_mean), told
    if not summary.problems:
        return "", "nothing was searched"
    judged = sum((Counter(row.verdicts) for row in summary.problems), Counter[str]())
    open_searches = (OutcomeStatus.WAITING, OutcomeStatus.INTERRUPTED)
    unfinished = sum(row.status in open_searches for row in summary.problems)
    if unfinished:
        ended = len(summary.problems) - unfinished
        rest = f"; {ended} ended without a faster kernel" if ended else ""
        return "", f"{unfinished} {'search has' if unfinished == 1 else 'searches have'} not ended{rest}"
    if judged and not judged[Verdict.CORRECT]:
        return "", "no candidate was correct"
    return "", "no kernel was faster than its start"


def _tiles(summary: RunSummary) -> list[Tile]:
    verdicts = sum((Counter(row.verdicts) for row in summary.problems), Counter[str]())
    spent = summary.spending
    dollars = total(spent.dollars)
    estimated = ", estimated" if spent.estimated else ""
    tokens = f"{(spent.prompt_tokens + spent.completion_tokens) / 1000:,.0f} k tokens{estimated}"
    gain = sum(math.log(row.searched_speedup) for row in summary.searched)
    each = Cost(spent.prompt_tokens + spent.completion_tokens, spent.dollars).per_doubling(gain)
    return [
        Tile(f"{verdicts.total()}", f"candidates judged, {verdicts[Verdict.CORRECT]} correct"),
        Tile(f"{sum(row.transitions for row in summary.problems)}", "steps"),
        Tile(f"{spent.calls}", f"model calls, {tokens}"),
        Tile(dollars, "spent: a recording answered" if summary.model_kind == ModelKind.RECORDED else "spent"),
        *([Tile(f"{short(each.tokens)} tokens", f"per doubling of speed; {money(each.dollars)}")] if each else []),
    ]


_STATUS_CLASS = {
    OutcomeStatus.IMPROVED: "good",
    OutcomeStatus.FAILED: "bad",
    OutcomeStatus.UNANSWERED: "bad",
    OutcomeStatus.NOT_EMULATABLE: "bad",
}


def _row(record: ProblemRecord, best: float) -> ResultRow:
    row, anchor = record.row, record.anchor
    c = row.comparison
    # A search that has not ended has no outcome yet; its start may have been judged all the same.
    judged = record.evaluations.get(record.start or "")
    began = judged.timing if judged is not None else None
    start = c.baseline if c else row.start or began
    final = c.candidate if c else None
    return ResultRow(
        anchor=anchor,
        problem=row.problem,
        name="" if row.name == str(row.problem) else row.name,
        status=row.status.replace("_", " "),
        status_class=_STATUS_CLASS.get(row.status, "warn"),
        start=microseconds(start.median_us) if start else "",
        final=microseconds(final.median_us) if final else "",
        speedup=times(c.speedup) if c else "",
        interval=f"{c.low:.2f} to {c.high:.2f}" if c and not c.candidate.modelled else "",
        share=_share(final or start),
        # Bars show ratios from 1 on, by their logarithm: twice as fast is half of four times.
        bar=round(100 * math.log(max(c.speedup, 1.0)) / math.log(max(best, 1.0001)), 1) if c else 0.0,
        told="" if row.status is OutcomeStatus.IMPROVED else row.reason,
        account=_account(row),
        verdicts=", ".join(f"{count} {name}" for name, count in sorted(row.verdicts.items())),
        cost=sum((step.cost for step in record.steps), start=Cost()),
        gain=math.log(row.searched_speedup),
    )


def _account(row: ProblemSummary) -> str:
    """A recalled kernel cost no model call: what it brought stands apart from what replies brought."""
    if row.recalled_speedup is None:
        return ""
    recalled = f"{times(row.recalled_speedup)} recalled from the knowledge base, without a model call"
    return f"{recalled}; {times(row.searched_speedup)} by the replies of this search"


def _share(timing: Timing | None) -> str:
    if timing is None or (timing.attainable_us is None and timing.floor_fraction is None):
        return ""
    if timing.attainable_us is not None:
        return f"{_percent(timing.attainable_us / timing.median_us)} of attainable"
    return f"{_percent(timing.floor_fraction or 0)} of the roofline floor"


def _percent(share: float) -> str:
    """Two digits, and whole percents from ten on: an estimate may be passed."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _problem(record: ProblemRecord, row: ResultRow, summary: RunSummary, room: PackRoom) -> ProblemView:
    before, after = record.evaluations.get(record.start or ""), record.evaluations.get(record.final or "")
    start, final = record.source(record.start), record.source(record.final)
    # Measured times of PyTorch stand beside measured ones alone.
    baseline = None if summary.emulated else record.baseline
    pack = TextPack()
    steps = step_views(record, pack)
    return ProblemView(
        row=row,
        hint=record.row.hint,
        tree=search_tree(record),
        roofline=roofline(record, summary.device),
        counters=counters(before, after),
        diff=side_by_side(start, final) if start is not None and final is not None else None,
        path=winning_path(record),
        hot_before=hot_kernels(before, start),
        hot_after=hot_kernels(after, final),
        workload=record.row.workload or "",
        times=(bars := _times(record.row)),
        attainable_told=ATTAINABLE_TOLD if any(bar.kind == "attainable" for bar in bars) else "",
        pytorch=_pytorch(baseline) or _shipped(record.row),
        pytorch_told=_pytorch_told(baseline) or (SHIPPED_TOLD if record.row.pytorch_us else ""),
        sweeps=sweep_views(record),
        lessons=lessons_view(record),
        steps=steps,
        texts=room.take(pack.packed()) if steps else "",
    )


_IMPLEMENTATIONS = {
    "start": "start",
    "final": "final kernel",
    "attainable": "attainable",
    "floor": "roofline floor",
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "max-autotune-no-cudagraphs": "torch.compile, autotuned",
    "reduce-overhead": "torch.compile, graphs",
}


def _times(row: ProblemSummary) -> tuple[TimeBar, ...]:
    """Start, final kernel, what is attainable, and the roofline floor where that is not known."""
    start = row.comparison.baseline if row.comparison else row.start
    if start is None:
        return ()
    known = _ours(row)
    if start.attainable_us is not None:
        known["attainable"] = start.attainable_us
    elif start.floor_us is not None:
        known["floor"] = start.floor_us
    return _bars(known)


def _pytorch(row: BaselineRow | None) -> tuple[TimeBar, ...]:
    return _bars({name: timing.median_us for name, timing in row.timings.items()}) if row is not None else ()


def _shipped(row: ProblemSummary) -> tuple[TimeBar, ...]:
    """Start and final kernel beside what PyTorch is known to take on that model of GPU."""
    ours = _ours(row) if row.pytorch_us else {}
    return _bars({**ours, **row.pytorch_us}) if ours else ()


def _ours(row: ProblemSummary) -> dict[str, float]:
    """Microseconds of start and final kernel, as far as they were timed."""
    if row.comparison is not None:
        return {"start": row.comparison.baseline.median_us, "final": row.comparison.candidate.median_us}
    return {} if row.start is None else {"start": row.start.median_us}


def _bars(known: dict[str, float]) -> tuple[TimeBar, ...]:
    """Microseconds by implementation as bars, the longest first."""
    longest = max(known.values(), default=1.0)
    return tuple(
        TimeBar(_IMPLEMENTATIONS.get(name, name), f"{microseconds(us)} µs", round(100 * us / longest, 2), name)
        for name, us in sorted(known.items(), key=lambda item: -item[1])
    )


def _pytorch_told(row: BaselineRow | None) -> str:
    if row is None:
        return ""
    ratios = [
        f"{times(ratio.speedup)} [{ratio.low:.2f}, {ratio.high:.2f}] against {_IMPLEMENTATIONS.get(name, name)}"
        for name, ratio in row.final_against.items()
        if name not in ("start", "final")
    ]
    told = f"measured in turns on {row.device.name}, size {row.workload}, {row.precision}, torch {row.torch}"
    if row.cover is None:
        told += "; launches were not hidden, so that PyTorch's times hold host time"
    return f"final kernel {'; '.join(ratios)}. All {told}." if ratios else f"{told[:1].upper()}{told[1:]}."
