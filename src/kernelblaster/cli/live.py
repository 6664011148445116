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
    FinalistMeasured,
    Finalized,
    Generated,
    HandedOut,
    LessonsDrawn,
    OutcomeStatus,
    Recalled,
    Reflected,
    ReplyCutShort,
    Review,
    RolloutStopped,
    Selected,
    Spending,
    StartProfiled,
    StartWritten,
    StepStarted,
    Swept,
    Verdict,
    Waiting,
)
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


def describe(event: Event, *, modelled: bool) -> str | None:
    """One event as a line of text; None for those that a reader need not see. Modelled figures are called so."""

    def times(speedup: float) -> str:
        return f"{speedup:.2f}x, modelled," if modelled else f"{speedup:.2f}x"

    match event:
        case StartWritten():
            return f"first kernel: {event.verdict}" + (f": {event.reason}" if event.reason else "")
        case StartProfiled() if event.median_us is not None:
            return (
                f"start: {event.verdict}, {event.median_us:.1f} us{' (modelled)' if modelled else ''}{_beside(event)}"
            )
        case StartProfiled():
            return f"start: {event.verdict}: {event.reason}"
        case Recalled() if event.accepted and event.speedup is not None:
            return f"recalled {event.core}: {times(event.speedup)} against the start; the search goes on from it"
        case Recalled():
            return f"recalled {event.core}, but {event.reason}"
        case Selected():
            return f"{event.state} -> {event.technique}"
        case Generated() if event.candidate is None or event.reason:
            return f"not evaluated: {event.reason}"
        case HandedOut():
            parents = len({one.parent.sha256 for one in event.allocations})
            kernels = f"{parents} kernel{'' if parents == 1 else 's'}"
            crossed = ", two of them joined once" if any(one.donor for one in event.allocations) else ""
            return f"{len(event.allocations)} replies on {kernels}{crossed}"
        case Swept() if event.skipped:
            return f"not swept: {event.skipped}"
        case Swept():
            gain = f", {times(event.gain)} over the values as written" if event.gain else ""
            return f"swept {len(event.points)} variants{gain}"
        case Evaluated() if event.speedup is not None:
            return f"{event.verdict}, {times(event.speedup)} against its parent: {event.decision}"
        case Evaluated():
            return event.verdict + (f": {event.reason}" if event.reason else "")
        case Decided() if event.accepted:
            return f"accepted {event.technique}: now {times(event.gain)} against the start"
        case RolloutStopped():
            steps = f"{event.steps} step{'' if event.steps == 1 else 's'}"
            return f"stopped after {steps} ({event.reason}), {times(event.gain)} against the start"
        case Waiting():
            return f"waits for a reply to {event.request_file}"
        case ReplyCutShort():
            return f"reply cut short after {event.characters} characters: {event.reason}"
        case LessonsDrawn():
            return f"lessons from pairs: {len(event.drawn)} effects, {len(event.skipped)} pairs without"
        case Reflected() if event.skipped:
            return f"no reflection: {event.skipped}"
        case Reflected():
            return f"reflection: {len(event.changes)} changes proposed, {len(event.refused)} do not fit the schema"
        case FinalistMeasured():
            speedup = f", {times(event.speedup)} against the start" if event.speedup is not None else ""
            told = event.rejected or (event.review if event.review != Review.NO_VETO else None)
            return f"finalist: {event.verdict}{speedup}" + (f": {told}" if told else "")
        case Finalized():
            return str(event.status) + (f": {event.reason}" if event.reason else "")
    return None


def _beside(start: StartProfiled) -> str:
    """`; attainable 182.9 us, PyTorch 174.1 us (eager)`; empty where nothing is known."""
    told = [] if start.attainable_us is None else [f"attainable {start.attainable_us:.1f} us"]
    if start.pytorch_us:
        mode, us = min(start.pytorch_us.items(), key=lambda timed: timed[1])
        told.append(f"PyTorch {us:.1f} us ({mode})")
    return f"; {', '.join(told)}" if told else ""


class PlainView:
    """One line per event, for logs and pipes; the current stage when no event comes for a while."""

    def __init__(self, console: Console, *, modelled: bool) -> None:
        self._console = console
        self._modelled = modelled
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
        text = describe(event, modelled=self._modelled)
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
        text = describe(event, modelled=self._modelled)
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
