"""Several runs side by side: what each reached on each problem, and what that cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.errors import UsageError
from kernelblaster.records.run_record import RunRecord
from kernelblaster.records.summary import ProblemSummary, RunSummary
from kernelblaster.report.costs import Cost, total
from kernelblaster.report.scales import microseconds, times

_LEAD = 1.01
"""Speed-ups that are closer than this factor are alike: no run is marked as the better one."""
_SHOWN = 60
"""Characters of a setting's value."""
_OWN = ("experiment", "out", "knowledge_base")
"""Settings that say where a run lies, not what it does: names that a setting's path ends in."""


@dataclass(frozen=True)
class RunToCompare:
    """A run as it is on disk. `label` tells it from the others."""

    label: str
    summary: RunSummary
    record: RunRecord

    @cached_property
    def rows(self) -> dict[str, ProblemSummary]:
        """Problem -> row, of those that were searched."""
        return {row.problem: row for row in self.summary.searched}


@dataclass(frozen=True)
class ComparisonCell:
    """A problem in one run; all empty where it was not searched there."""

    speedup: str = ""
    final: str = ""
    told: str = ""
    recalled: str = ""
    """What of the speed-up a recalled kernel brought; empty where none was."""
    best: bool = False
    width: float = 0.0
    """Of its bar, in percent of the table's largest, by logarithm."""


@dataclass(frozen=True)
class ProblemLine:
    """A problem in all runs."""

    title: str
    pytorch: str
    """The fastest mode of PyTorch that is known, in microseconds."""
    cells: tuple[ComparisonCell, ...]


@dataclass(frozen=True)
class RunColumn:
    """A run over all problems. Means are over problems that every run searched; failures count as 1."""

    label: str
    model: str
    mean: str
    best: bool
    improved: str
    tokens: str
    dollars: str
    per_doubling: str
    """Tokens and dollars for each doubling of speed that replies brought; recalled kernels cost none.
    Told where the run searched no other problems, for what it spent is of all."""


@dataclass(frozen=True)
class DifferingSetting:
    """A setting that the runs do not share, with its value in each."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class ComparisonPage:
    """The whole page."""

    device: str
    kind: str
    """`modelled` or `measured`."""
    shared: int
    """Problems that every run searched."""
    columns: tuple[RunColumn, ...]
    lines: tuple[ProblemLine, ...]
    settings: tuple[DifferingSetting, ...]


def make_comparison(runs: Sequence[RunToCompare]) -> ComparisonPage:
    """The page that compares runs. Raises UsageError for runs on different devices, whose times do not compare."""
    devices = {(run.summary.device.kind, run.summary.device.name) for run in runs}
    if len(devices) > 1:
        names = ", ".join(sorted(f"{name} ({kind})" for kind, name in devices))
        raise UsageError(f"the runs were timed on different devices: {names}", hint="compare runs of one device")
    shared = [problem for problem in runs[0].rows if all(problem in run.rows for run in runs)]
    means = [_mean_log(run, shared) for run in runs]
    first = runs[0].summary
    return ComparisonPage(
        device=f"{first.device.name} ({first.device.arch})",
        kind="modelled" if first.emulated else "measured",
        shared=len(shared),
        columns=tuple(_column(run, shared, mean, means) for run, mean in zip(runs, means, strict=True)),
        lines=tuple(_lines(runs)),
        settings=tuple(_settings([run.record for run in runs])),
    )


def _speedup(row: ProblemSummary) -> float:
    """Against the start; 1 where nothing beat it."""
    return row.comparison.speedup if row.comparison else 1.0


def _mean_log(run: RunToCompare, problems: Sequence[str]) -> float:
    return sum(math.log(_speedup(run.rows[problem])) for problem in problems) / max(1, len(problems))


def _column(run: RunToCompare, shared: Sequence[str], mean: float, means: Sequence[float]) -> RunColumn:
    spent = run.summary.spending
    cost = Cost(spent.prompt_tokens + spent.completion_tokens, spent.dollars)
    searched = sum(math.log(run.rows[problem].searched_speedup) for problem in shared)
    improved = sum(row.status is OutcomeStatus.IMPROVED for row in run.summary.searched)
    return RunColumn(
        label=run.label,
        model=run.summary.model,
        mean=times(math.exp(mean)) if shared else "",
        best=bool(shared) and mean == max(means) and _leads([math.exp(one) for one in means]),
        improved=f"{improved} of {len(run.summary.searched)}",
        tokens=f"{cost.tokens / 1000:,.0f} k{', estimated' if spent.estimated else ''}",
        dollars=total(spent.dollars),
        per_doubling=_per_doubling(searched, cost, others=len(run.rows) - len(shared)) if shared else "",
    )


def _per_doubling(searched: float, cost: Cost, *, others: int) -> str:
    if others:
        return f"searched {others} more"
    each = cost.per_doubling(searched)
    return each.told if each is not None else "no gain" if cost.tokens else ""


def _lines(runs: Sequence[RunToCompare]) -> Iterator[ProblemLine]:
    rows = {row.problem: row for run in reversed(runs) for row in run.summary.problems}
    most = max((_speedup(row) for run in runs for row in run.rows.values()), default=1.0)
    for problem in sorted(rows):
        own = [next((row for row in run.summary.problems if row.problem == problem), None) for run in runs]
        speedups = [_speedup(run.rows[problem]) for run in runs if problem in run.rows]
        best = max(speedups) if _leads(speedups) else None
        known = [us for row in own if row is not None for us in row.pytorch_us.values()]
        yield ProblemLine(
            title=rows[problem].title,
            pytorch=microseconds(min(known)) if known else "",
            cells=tuple(ComparisonCell() if row is None else _cell(row, best, most) for row in own),
        )


def _leads(speedups: Sequence[float]) -> bool:
    """Whether one of them is the best beyond doubt."""
    ordered = sorted(speedups, reverse=True)
    return len(ordered) > 1 and ordered[0] > _LEAD * ordered[1]


def _cell(row: ProblemSummary, best: float | None, most: float) -> ComparisonCell:
    if row.comparison is None:
        return ComparisonCell(told=row.reason or row.status.replace("_", " "))
    speedup = row.comparison.speedup
    return ComparisonCell(
        speedup=times(speedup),
        final=microseconds(row.comparison.candidate.median_us),
        recalled=f"{times(row.recalled_speedup)} recalled" if row.recalled_speedup is not None else "",
        best=speedup == best,
        width=round(100 * math.log(max(speedup, 1.0)) / math.log(max(most, 1.0001)), 1),
    )


def _settings(records: Sequence[RunRecord]) -> Iterator[DifferingSetting]:
    """Settings whose values differ, by name."""
    flat = [dict(_leaves(json.loads(record.config.model_dump_json()))) for record in records]
    for name in sorted({name for one in flat for name in one}):
        values = [one.get(name) for one in flat]
        if any(value != values[0] for value in values) and name.rpartition(".")[2] not in _OWN:
            yield DifferingSetting(name, tuple(_told(value) for value in values))


def _leaves(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def _told(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
