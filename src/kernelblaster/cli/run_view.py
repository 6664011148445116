"""How a run looks while it goes on: what it chose, then a live table or plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from kernelblaster import DeviceKind, Event, ExpectedCosts, RunChoices, RunInProgress, RunObserver
from kernelblaster.cli import terminal
from kernelblaster.cli.live import LiveView, PlainView, RunView
from kernelblaster.cli.progress import Progress


class TerminalObserver(RunObserver):
    """Shows a run on a terminal, or as lines in a log. A context manager, left when the run has ended.

    Args:
        console: for what was chosen, and for the live table where it is a terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stack = ExitStack()
        self._progress: Progress | None = None
        self._view: RunView | None = None

    def __enter__(self) -> Self:
        self._progress = self._stack.enter_context(Progress())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress = None
        self._stack.close()

    def tell(self, stage: str) -> None:
        """Show what is being done."""
        if self._view is not None:
            self._view.tell(stage)
        elif self._progress is not None:
            self._progress.tell(stage)

    def chosen(self, choices: RunChoices) -> None:
        """Print device, model and knowledge base."""
        self._progress = None
        self._stack.close()
        facts = choices.facts
        self._line(f"device:    {facts.name} ({facts.arch}): {choices.device_reason}")
        self._line(f"model:     {choices.model_reason}")
        self._line(f"knowledge: {choices.knowledge_reason}")

    @contextmanager
    def searching(self, run: RunInProgress) -> Iterator[None]:
        """Show the search until it ends."""
        if run.finished_before:
            told = f"{run.finished_before} of {len(run.problems)} problems finished before"
            self._line(f"{told}: their results are shown, not searched for; --no-resume searches anew")
        for line in cost_lines(run.costs) if run.costs else ():
            self._line(line)
        with view_of(run, self._console) as self._view:
            yield
        self._view = None

    def cut_off(self, report: Path | None) -> None:
        """Name the page of what was found."""
        if report is not None:
            terminal.console(stderr=True).print(f"report: {report}", markup=False, soft_wrap=True)

    def emit(self, event: Event) -> None:
        """Show one event."""
        if self._view is not None:
            self._view.emit(event)

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


def cost_lines(costs: ExpectedCosts) -> Iterator[str]:
    """What a search may cost, and where it is cut off."""
    expected, caps, before = costs.forecast, costs.caps, costs.before
    tokens = f"{_thousands(expected.prompt_tokens)} + {_thousands(expected.completion_tokens)} tokens"
    dollars = "" if expected.dollars is None else f", ${expected.dollars:.2f}"
    source = "as long as this run's own" if expected.observed else "as long as the recorded ones, without reasoning"
    repairs = f"; a step that fails asks up to {expected.repairs} times more" if expected.repairs else ""
    yield (f"forecast:  at most {expected.steps} steps; with one reply each, {source}, {tokens}{dollars}{repairs}")
    held = [f"${caps.dollars:g}"] if caps.dollars is not None else []
    held += [f"{caps.tokens:,} tokens"] if caps.tokens is not None else []
    held += [f"{caps.minutes:g} minutes"] if caps.minutes is not None else []
    default = " by default; --max-dollars or --max-tokens sets another" if costs.by_default else ""
    spent = f"; earlier starts took {_thousands(before.prompt_tokens + before.completion_tokens)} tokens of it"
    yield f"cap:       {', '.join(held)}{default}{spent if before.calls else ''}"


def _thousands(tokens: int) -> str:
    return f"{tokens / 1e6:.1f} M" if tokens >= 1_000_000 else f"{tokens / 1000:.0f} k"


def view_of(run: RunInProgress, console: Console) -> RunView:
    """A live table on a terminal, plain lines on standard error elsewhere."""
    modelled = run.facts.kind is DeviceKind.EMULATED
    if not console.is_terminal:
        return PlainView(terminal.console(stderr=True), modelled=modelled)
    search = run.config.search
    return LiveView(
        console,
        [str(problem.id) for problem in run.problems],
        search.rounds * search.rollouts * search.steps,
        run.spending,
        run.seconds_left,
        modelled=modelled,
    )
