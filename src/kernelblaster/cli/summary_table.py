"""The final table of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelblaster import OutcomeStatus, ProblemSummary, RunSummary, Spending, process_pairs_text
from kernelblaster.config import ModelKind

STYLES = {
    OutcomeStatus.IMPROVED: "green",
    OutcomeStatus.NO_IMPROVEMENT: "yellow",
    OutcomeStatus.UNANSWERED: "red",
    OutcomeStatus.NOT_EMULATABLE: "red",
    OutcomeStatus.FAILED: "red",
    OutcomeStatus.BUDGET: "yellow",
    OutcomeStatus.WAITING: "cyan",
    OutcomeStatus.INTERRUPTED: "yellow",
}


def print_summary(console: Console, summary: RunSummary) -> None:
    """Print the summary of a run."""
    kind = "modelled" if summary.emulated else "measured"
    warning = "; times are modelled, not measured" if summary.emulated else ""
    console.print()
    author = "a recording" if summary.model_kind == ModelKind.RECORDED else summary.model
    title = f"{summary.device.name}, {summary.precision}, candidates by {author}{warning}"
    console.print(title, style="bold", markup=False, soft_wrap=True)
    table = Table(header_style="dim", box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True)
    table.add_column("outcome")
    for column in (f"start, us {kind}", f"final, us {kind}", "speed-up" if summary.emulated else "speed-up [interval]"):
        table.add_column(column, justify="right")
    beside = [told for told in _BESIDE if any(told.cell(row) for row in summary.problems)]
    for told in beside:
        table.add_column(told.head, justify="right")
    for row in summary.problems:
        outcome = Text(row.status.replace("_", " "), style=STYLES[row.status])
        table.add_row(row.title, outcome, *_times(row), *(told.cell(row) for told in beside))
    console.print(table)
    console.print()
    for warned in filter(None, (summary.sampled, summary.weak, *summary.warnings)):
        console.print(warned, style="yellow", markup=False, soft_wrap=True)
    for line in _facts(summary):
        console.print(line, markup=False, soft_wrap=True)


@dataclass(frozen=True)
class _Beside:
    """A column that is there where some problem has something to say in it."""

    head: str
    cell: Callable[[ProblemSummary], str]


def _attainable(row: ProblemSummary) -> str:
    return "" if row.attainable_us is None else f"{row.attainable_us:.1f}"


def _pytorch(row: ProblemSummary) -> str:
    """`174.1 eager`"""
    fastest = row.fastest_pytorch
    return "" if fastest is None else f"{fastest[1]:.1f} {fastest[0]}"


_BESIDE = (_Beside("attainable, us", _attainable), _Beside("fastest PyTorch, us", _pytorch))


def _times(row: ProblemSummary) -> tuple[str, str, str]:
    c = row.comparison
    if c is None:
        return f"{row.start.median_us:.1f}" if row.start else "", "", ""
    interval = "" if c.candidate.modelled else f" [{c.low:.2f}, {c.high:.2f}]"
    return f"{c.baseline.median_us:.1f}", f"{c.candidate.median_us:.1f}", f"{c.speedup:.2f}x{interval}"


def _facts(summary: RunSummary) -> Iterator[str]:
    mean = summary.geometric_mean
    if mean is not None and len(summary.problems) > 1:
        over = f" of {len(summary.searched)} problems" if len(summary.searched) < len(summary.problems) else ""
        yield f"geometric mean speed-up over the start{over}: {mean:.2f}x (no improvement counts as 1)"
    verdicts = sum((Counter(row.verdicts) for row in summary.problems), Counter[str]())
    if verdicts:
        yield "candidates: " + ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
    for row in summary.problems:
        if row.reason and row.status is not OutcomeStatus.IMPROVED:
            yield f"{row.problem}: {row.reason}"
        if row.hint:
            yield f"  -> {row.hint}"
        if row.recalled_speedup is not None:
            rest = f"{row.searched_speedup:.2f}x by this search's replies"
            yield f"{row.problem}: {row.recalled_speedup:.2f}x recalled from the knowledge base, {rest}"
        if row.comparison and row.comparison.sessions:
            yield f"{row.problem}: measured in {process_pairs_text(row.comparison)}"
        if row.final_kernel:
            yield f"final kernel: {row.final_kernel}"
    if summary.unjudged:
        yield summary.unjudged
    if summary.ablated:
        yield f"switched off in this search: {', '.join(summary.ablated)}"
    now = summary.spending_of_start or summary.spending
    if now == summary.spending:
        yield f"model calls: {_spending(now)}"
    else:
        yield f"model calls of this start: {_spending(now)}"
        yield f"model calls of the run, earlier starts included: {_spending(summary.spending)}"
    yield f"knowledge base: {summary.knowledge_base}"
    if summary.report:
        yield f"report: {summary.report}"
    yield f"took {summary.seconds:.0f} s"
    for path in summary.pending_requests:
        yield f"to be answered: {path}"
    if summary.pending_requests:
        yield "put the replies beside it as replies*.jsonl, or `kernelblaster answer` that folder where the key is;"
        yield "then give the same command again"
    if summary.stopped:
        yield f"stopped: {summary.stopped}"
    if any(row.status is OutcomeStatus.BUDGET for row in summary.problems):
        yield "the same command with a higher cap continues"


def _spending(spent: Spending) -> str:
    dollars = "price unknown" if spent.dollars is None and spent.calls else f"${spent.dollars or 0:.4f}"
    estimated = " (estimated)" if spent.estimated else ""
    return f"{spent.calls}, {spent.prompt_tokens} + {spent.completion_tokens} tokens{estimated}, {dollars}"
