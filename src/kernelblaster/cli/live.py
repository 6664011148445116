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

from kernelblaster import (
    Decided,
    Evaluated,
    Event,
    Finalized,
    OutcomeStatus,
    Recalled,
    RolloutStopped,
    Spending,
    StartProfiled,
    StepStarted,
    Verdict,
)
from kernelblaster.cli.event_lines import EventLines
from kernelblaster.cli.progress import Heartbeat

LINE_CHARACTERS = 300
"""Of one event in a log."""
WIDE, WIDER = 80, 110
"""Columns of a terminal that has room for progress bars, and for times as well."""
STATUS_STYLES = {OutcomeStatus.IMPROVED: "bold green", OutcomeStatus.FAILED: "bold red"}


class RunView(Protocol):
    """A watcher of a run; a context manager that also takes events."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def emit(self, event: Event) -> None:
        """Take one event."""
        ...

    def tell(self, stage: str) -> None:
        """The device does this now."""
        ...


@dataclass
class _Row:
    """What the live table shows of one problem."""

    steps: dict[str, int] = field(default_factory=dict)
    """Rollout -> its step in progress."""
    verdicts: dict[str, int] = field(default_factory=dict)
    doing: str = ""
    best: float = 1.0
    start: StartProfiled | None = None
    status: OutcomeStatus | None = None
    seen: set[tuple[str, str]] = field(default_factory=set)


class PlainView:
    """One line per event, for logs and pipes; the current stage when no event comes for a while."""

    def __init__(self, console: Console, *, modelled: bool) -> None:
        self._console = console
        self._lines = EventLines(modelled=modelled)
        self._heartbeat = Heartbeat(console)

    def __enter__(self) -> Self:
        self._heartbeat.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heartbeat.__exit__(kind, error, trace)

    def tell(self, stage: str) -> None:
        """The device does this now."""
        self._heartbeat.tell(stage)

    def emit(self, event: Event) -> None:
        """Print one event."""
        text = self._lines.line(event)
        if text is not None:
            self._heartbeat.postpone()
            place = event.slot.removeprefix(event.problem).strip("/")
            stamp = time.strftime("%H:%M:%S", time.localtime(event.at))
            line = f"{stamp} {event.problem} {place}: {' '.join(text.split())[:LINE_CHARACTERS]}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveView:
    """A table that refreshes in place: problems, steps, verdicts, best speed-up, money, time left.

    Args:
        console: a terminal.
        problems: identities, in the order they are shown.
        steps_total: most steps of one problem's search.
        spending: totals of the model's ledger.
        seconds_left: wall seconds until the run's cap, earlier starts included; None for no cap.
        modelled: whether speed-ups come from the emulated device.
    """

    def __init__(
        self,
        console: Console,
        problems: list[str],
        steps_total: int,
        spending: Callable[[], Spending],
        seconds_left: Callable[[], float | None],
        *,
        modelled: bool,
    ) -> None:
        self._console = console
        self._rows = {name: _Row() for name in problems}
        self._steps_total = steps_total
        self._spending = spending
        self._seconds_left = seconds_left
        self._modelled = modelled
        self._lines = EventLines(modelled=modelled)
        self._began = time.monotonic()
        self._stage = ""
        self._stage_began = self._began
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def tell(self, stage: str) -> None:
        """The device does this now."""
        self._stage, self._stage_began = stage, time.monotonic()

    def emit(self, event: Event) -> None:
        """Update the row of the event's problem."""
        row = self._rows[event.problem]
        text = self._lines.line(event)
        if text is not None:
            row.doing = " ".join(text.split())
        match event:
            case StartProfiled():
                row.start = event
            case StepStarted():
                rollout, _, step = event.slot.rpartition("/")
                row.steps[rollout] = int(step.rpartition("-")[2])
            case Evaluated() if (event.slot, event.candidate) not in row.seen:
                row.seen.add((event.slot, event.candidate))
                row.verdicts[event.verdict] = row.verdicts.get(event.verdict, 0) + 1
            case Recalled() if event.accepted and event.speedup is not None:
                row.best = max(row.best, event.speedup)
            case Decided() | RolloutStopped():
                row.best = max(row.best, event.gain)
            case Finalized():
                row.status = event.status

    def _render(self) -> Group:
        shown = self._shown()
        hidden = len(self._rows) - len(shown)
        more = [Text(f"and {hidden} more problems", style="dim")] if hidden else []
        return Group(self._table(shown), *more, self._footer())

    def _table(self, shown: list[tuple[str, _Row]]) -> Table:
        wide = self._console.width >= WIDE
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        table.add_column("problem", no_wrap=True, min_width=max(map(len, self._rows)))
        if wide:
            table.add_column("steps", no_wrap=True)
        for name in ("correct", "best, modelled" if self._modelled else "best"):
            table.add_column(name, no_wrap=wide)
        wider = self._console.width >= WIDER
        for name in (f"us{', modelled' if self._modelled else ''}", "attainable", "PyTorch") if wider else ():
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("now", ratio=1, no_wrap=True, overflow="ellipsis")
        for name, row in shown:
            bar = [self._bar(row)] if wide else []
            times = self._times(row) if wider else []
            table.add_row(name, *bar, self._correct(row), Text(f"{row.best:.2f}x"), *times, self._now(row))
        return table

    @staticmethod
    def _times(row: _Row) -> list[str]:
        """Of the fastest kernel until now, of a well-written one, and of PyTorch, in microseconds."""
        start = row.start
        if start is None or start.median_us is None:
            return ["", "", ""]
        own = f"{start.median_us / row.best:.1f}"
        attainable = "" if start.attainable_us is None else f"{start.attainable_us:.1f}"
        return [own, attainable, f"{min(start.pytorch_us.values()):.1f}" if start.pytorch_us else ""]

    def _shown(self) -> list[tuple[str, _Row]]:
        """As many rows as the terminal has room for, those at work first."""
        room = max(1, self._console.height - 6)
        if len(self._rows) <= room:
            return list(self._rows.items())
        return sorted(self._rows.items(), key=lambda item: (item[1].status is not None, not item[1].doing))[:room]

    def _bar(self, row: _Row) -> ProgressBar:
        done = self._steps_total if row.status else sum(row.steps.values())
        return ProgressBar(total=self._steps_total, completed=min(done, self._steps_total), width=16)

    @staticmethod
    def _correct(row: _Row) -> Text:
        correct, judged = row.verdicts.get(Verdict.CORRECT, 0), sum(row.verdicts.values())
        return Text(f"{correct} of {judged}" if judged else "")

    @staticmethod
    def _now(row: _Row) -> Text:
        return Text(row.doing, style=STATUS_STYLES.get(row.status, "") if row.status else "dim", overflow="ellipsis")

    def _footer(self) -> Text:
        spent = self._spending()
        money = "price unknown" if spent.dollars is None and spent.calls else f"${spent.dollars or 0:.2f}"
        tokens = f"{(spent.prompt_tokens + spent.completion_tokens) / 1000:.0f}k tokens"
        now = time.monotonic()
        elapsed = now - self._began
        seconds = self._seconds_left()
        left = "" if seconds is None else f", at most {max(0.0, seconds) / 60:.0f} min left"
        stage = f"; {self._stage} ({now - self._stage_began:.0f} s)" if self._stage else ""
        text = f"{spent.calls} model calls, {tokens}, {money}; {elapsed / 60:.1f} min{left}{stage}"
        return Text(text, style="dim", no_wrap=True, overflow="ellipsis")
