"""What a person watches during a run: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelblaster.agent import events as ev
from kernelblaster.agent.state import OutcomeStatus
from kernelblaster.runs.summary import Spending

VERDICT_STYLES = {"correct": "green", "faster": "bold green", "slower": "yellow", "inconclusive": "dim"}
STATUS_STYLES = {OutcomeStatus.IMPROVED: "bold green", OutcomeStatus.FAILED: "bold red"}


class View(Protocol):
    """A watcher of a run; a context manager that also takes events."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def emit(self, event: ev.Event) -> None:
        """Take one event."""
        ...


@dataclass
class _Row:
    """What the live table shows of one problem."""

    steps: dict[str, int] = field(default_factory=dict)
    """Rollout -> its step in progress."""
    verdicts: dict[str, int] = field(default_factory=dict)
    doing: str = "profiling the start"
    best: float = 1.0
    status: OutcomeStatus | None = None
    seen: set[tuple[str, str]] = field(default_factory=set)


def _describe(event: ev.Event) -> str | None:
    """One event as a line of text; None for those that a reader need not see."""
    match event:
        case ev.StartProfiled():
            time_text = f"{event.median_us:.1f} us" if event.median_us else event.reason
            return f"start: {event.verdict}, {time_text}"
        case ev.Selected():
            return f"{event.state} -> {event.technique}"
        case ev.Generated() if event.candidate is None:
            return f"unusable reply: {event.reason}"
        case ev.Evaluated():
            speed = f", {event.speedup:.2f}x its parent ({event.decision})" if event.speedup else ""
            return f"{event.verdict}{speed}" + (f": {event.reason}" if event.reason else "")
        case ev.Decided() if event.accepted:
            return f"accepted {event.technique}: {event.gain:.2f}x the start"
        case ev.RolloutStopped():
            return f"rollout stopped ({event.reason}) after {event.steps} steps at {event.gain:.2f}x"
        case ev.Waiting():
            return f"waits for a reply in {event.request_file}"
        case ev.Reflected():
            return f"reflection: {event.applied} changes applied, {len(event.rejected)} refused"
        case ev.FinalistMeasured():
            return f"finalist: {event.verdict}" + (f", {event.speedup:.2f}x the start" if event.speedup else "")
        case ev.Finalized():
            return f"{event.status}" + (f": {event.reason}" if event.reason else "")
    return None


class PlainView:
    """One line per event, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def emit(self, event: ev.Event) -> None:
        """Print one event."""
        text = _describe(event)
        if text is not None:
            place = event.slot.removeprefix(event.problem).strip("/")
            stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
            self._console.print(
                f"{stamp} {event.problem} {place}: {text}", markup=False, highlight=False, soft_wrap=True
            )


class LiveView:
    """A table that refreshes in place: problems, rollouts, step, verdicts, best speed-up, money, time left."""

    def __init__(
        self,
        console: Console,
        problems: list[str],
        steps_total: int,
        spending: Callable[[], Spending],
        deadline: float | None,
    ) -> None:
        self._rows = {name: _Row() for name in problems}
        self._steps_total = steps_total
        self._spending = spending
        self._deadline = deadline
        self._began = time.monotonic()
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def emit(self, event: ev.Event) -> None:
        """Update the row of the event's problem."""
        row = self._rows[event.problem]
        text = _describe(event)
        if text is not None:
            row.doing = text
        match event:
            case ev.StepStarted():
                rollout, _, step = event.slot.rpartition("/")
                row.steps[rollout] = int(step.rpartition("-")[2])
            case ev.Evaluated() if (event.slot, event.candidate) not in row.seen:
                row.seen.add((event.slot, event.candidate))
                row.verdicts[event.verdict] = row.verdicts.get(event.verdict, 0) + 1
            case ev.Decided() | ev.RolloutStopped():
                row.best = max(row.best, event.gain)
            case ev.Finalized():
                row.status = event.status

    def _render(self) -> Group:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for name in ("problem", "steps", "verdicts", "best", "now"):
            table.add_column(name, no_wrap=name != "now", overflow="ellipsis")
        for name, row in self._rows.items():
            table.add_row(name, self._bar(row), self._verdicts(row), Text(f"{row.best:.2f}x"), self._now(row))
        return Group(table, self._footer())

    def _bar(self, row: _Row) -> ProgressBar:
        done = self._steps_total if row.status else sum(row.steps.values())
        return ProgressBar(total=self._steps_total, completed=min(done, self._steps_total), width=16)

    @staticmethod
    def _verdicts(row: _Row) -> Text:
        parts = [(f"{count} {name}  ", VERDICT_STYLES.get(name, "red")) for name, count in sorted(row.verdicts.items())]
        return Text.assemble(*parts)

    @staticmethod
    def _now(row: _Row) -> Text:
        return Text(row.doing, style=STATUS_STYLES.get(row.status, "") if row.status else "dim", overflow="ellipsis")

    def _footer(self) -> Text:
        spent = self._spending()
        money = "unknown price" if spent.dollars is None and spent.calls else f"${spent.dollars or 0:.2f}"
        tokens = f"{(spent.prompt_tokens + spent.completion_tokens) / 1000:.0f}k tokens"
        elapsed = time.monotonic() - self._began
        left = f", at most {max(0.0, self._deadline - elapsed) / 60:.0f} min left" if self._deadline else ""
        return Text(f"{spent.calls} model calls, {tokens}, {money}; {elapsed / 60:.1f} min{left}", style="dim")
