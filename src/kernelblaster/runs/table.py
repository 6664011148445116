"""The final table of a run."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelblaster.agent.state import OutcomeStatus
from kernelblaster.runs.summary import ProblemSummary, RunSummary

STYLES = {
    OutcomeStatus.IMPROVED: "green",
    OutcomeStatus.NO_IMPROVEMENT: "yellow",
    OutcomeStatus.FAILED: "red",
    OutcomeStatus.BUDGET: "yellow",
    OutcomeStatus.WAITING: "cyan",
}


def _times(row: ProblemSummary) -> tuple[str, str, str]:
    if row.comparison is None:
        return "", "", ""
    c = row.comparison
    return (
        f"{c.rival.median_us:.1f}",
        f"{c.candidate.median_us:.1f}",
        f"{c.speedup:.2f}x [{c.low:.2f}, {c.high:.2f}]",
    )


def print_summary(console: Console, summary: RunSummary) -> None:
    """Print what a run came to."""
    kind = "modelled us (emulated)" if summary.emulated else "us"
    table = Table(
        title=f"{summary.device.name}, {summary.precision}", title_justify="left", header_style="dim", box=None
    )
    for column in ("problem", "outcome", f"start, {kind}", f"final, {kind}", "speed-up [95 %]", "verdicts"):
        table.add_column(column)
    for row in summary.problems:
        verdicts = ", ".join(f"{count} {name}" for name, count in sorted(row.verdicts.items()))
        outcome = Text(str(row.status), style=STYLES[row.status])
        table.add_row(f"{row.problem} {row.name}", outcome, *_times(row), verdicts)
    console.print()
    console.print(table)
    _print_facts(console, summary)


def _print_facts(console: Console, summary: RunSummary) -> None:
    mean = summary.geometric_mean
    lines = []
    if mean is not None and len(summary.problems) > 1:
        lines.append(f"geometric mean speed-up over the start: {mean:.2f}x (no improvement counts as 1)")
    for row in summary.problems:
        if row.reason and row.status is not OutcomeStatus.IMPROVED:
            lines.append(f"{row.problem}: {row.reason}")
        if row.final_kernel:
            lines.append(f"final kernel: {row.final_kernel}")
    spent = summary.spending
    dollars = "price unknown" if spent.dollars is None and spent.calls else f"${spent.dollars or 0:.4f}"
    estimated = " (estimated)" if spent.estimated else ""
    lines.append(
        f"model calls: {spent.calls}, {spent.prompt_tokens} + {spent.completion_tokens} tokens{estimated}, {dollars}"
    )
    lines.append(f"knowledge base: {summary.knowledge_base}")
    if summary.report:
        lines.append(f"report: {summary.report}")
    for path in summary.pending_requests:
        lines.append(f"to be answered: {path}")
    if summary.pending_requests:
        lines.append("put the replies beside it as replies*.jsonl and give the same command again")
    if summary.stopped:
        lines.append(f"stopped: {summary.stopped}; the same command with a higher cap continues")
    lines.append(f"took {summary.seconds:.0f} s")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
