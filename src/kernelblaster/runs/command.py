"""What `kernelblaster run` does, from a request to an exit code: choose, set up, search, sum up."""

from __future__ import annotations

import asyncio
import platform
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel
from rich.console import Console

from kernelblaster import __version__
from kernelblaster.agent.state import OutcomeStatus
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.inputs import InputStore
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Problem, Size
from kernelblaster.replay.buffer import ReplayBuffer
from kernelblaster.runs.choose import DeviceChoice, choose_device
from kernelblaster.runs.execute import RunParts, execute, finished_outcome
from kernelblaster.runs.layout import RunLayout
from kernelblaster.runs.live import LiveView, PlainView, View
from kernelblaster.runs.summary import ProblemSummary, RunSummary, Spending
from kernelblaster.runs.table import print_summary

POLL_SECONDS = 5.0


@dataclass(frozen=True)
class RunRequest:
    """Everything the command line says about a run.

    Attributes:
        config: the configuration, complete but for what the device decides.
        model_reason: why this model, one line.
        problem_numbers, subset, problem_dir, dataset_dir: which problems.
        exchange: folder of the batch exchange; None for the run's own.
        wait: wait for replies instead of exiting with code 75.
        resume: continue what an earlier start left; otherwise it is moved aside.
        retry: search again where nothing was found.
        json_output: print the summary as JSON.
    """

    config: RunConfig
    model_reason: str
    problem_numbers: str | None
    subset: str | None
    problem_dir: Path | None
    dataset_dir: Path | None
    exchange: Path | None
    wait: bool
    resume: bool
    retry: bool
    json_output: bool


class RunRecord(BaseModel):
    """`run.json`: what ran, on what, with which versions."""

    format: str = "kernelblaster-run-1"
    run: str
    started: str
    config: RunConfig
    size: Size
    device: DeviceFacts
    device_reason: str
    model_reason: str
    versions: dict[str, str]


def load_problems(request: RunRequest) -> list[Problem]:
    """The problems asked for. Raises UsageError when there are none."""
    if request.problem_dir is not None:
        from kernelblaster.problems.loader import load_problem

        return [load_problem(request.problem_dir)]
    dataset = Dataset(request.dataset_dir or data_dir() / request.config.dataset)
    return list(dataset.select(subset=request.subset, numbers=request.problem_numbers))


def timed_size(config: RunConfig, facts: DeviceFacts) -> Size:
    """The size that is timed: as configured, else small where times are modelled and medium on a GPU."""
    if config.size is not None:
        return config.size
    return Size.SMALL if facts.kind is DeviceKind.EMULATED else Size.MEDIUM


def run_command(request: RunRequest) -> int:
    """Run; returns the exit code. Raises KernelBlasterError."""
    console = Console(stderr=request.json_output)
    problems = load_problems(request)
    choice = choose_device(request.config)
    console.print(f"device: {choice.device.facts.name} ({choice.device.facts.arch}): {choice.reason}", soft_wrap=True)
    console.print(f"model:  {request.model_reason}", soft_wrap=True)
    layout = RunLayout.of(request.config)
    layout.run.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(layout.lock, timeout=0):
            summary = _run_locked(request, problems, choice, layout, console)
    except Timeout:
        raise UsageError(
            f"another process is working in {layout.run}", cure="wait for it, or use another --experiment"
        ) from None
    (layout.run / "summary.json").write_text(summary.model_dump_json(indent=1))
    if request.json_output:
        sys.stdout.write(summary.model_dump_json() + "\n")
    else:
        print_summary(console, summary)
    return int(summary.exit_code)


def _run_locked(
    request: RunRequest, problems: list[Problem], choice: DeviceChoice, layout: RunLayout, console: Console
) -> RunSummary:
    config = request.config
    if not request.resume:
        _set_aside(layout, problems)
    if request.retry:
        _forget_failures(layout, problems)
    size = timed_size(config, choice.device.facts)
    began = time.monotonic()
    knowledge = prepare_knowledge(config, layout)
    record = _record(request, layout, choice, size)
    ledger = CostLedger(layout.ledger, config.budget)
    exchange = request.exchange or layout.exchange
    model = build_model(config.model, exchange, ledger, choice.device.facts.name)
    inputs = InputStore()
    replay = ReplayBuffer(layout.replay)
    with inputs, _view(request, problems, config, ledger, console) as view:
        parts = RunParts(
            run=record.run,
            config=config,
            size=size,
            layout=layout,
            evaluator=Evaluator(
                choice.device, inputs, config.evaluation, size, config.libraries, precision=config.precision
            ),
            model=model,
            knowledge=knowledge,
            replay=replay,
            watchers=(view,),
        )
        rows, stopped = _search(request, parts, problems, exchange)
    summary = RunSummary(
        run=record.run,
        device=choice.device.facts,
        precision=config.precision,
        model=config.model.name,
        model_kind=config.model.kind,
        problems=rows,
        spending=spending(ledger),
        knowledge_base=layout.knowledge_base,
        directory=layout.run,
        seconds=time.monotonic() - began,
        stopped=stopped,
        pending_requests=_pending(exchange, rows),
    )
    from kernelblaster.report.build import write_report

    return summary.model_copy(update={"report": write_report(summary, layout)})


def _search(
    request: RunRequest, parts: RunParts, problems: list[Problem], exchange: Path
) -> tuple[list[ProblemSummary], str | None]:
    """Search; with `--wait`, start again whenever the exchange folder has changed."""
    while True:
        rows, stopped = asyncio.run(execute(parts, problems))
        waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
        if not (waiting and request.wait):
            return rows, stopped
        before = _replies(exchange)
        while _replies(exchange) == before:
            time.sleep(POLL_SECONDS)


def _pending(exchange: Path, rows: list[ProblemSummary]) -> list[Path]:
    """Files that someone has to answer; none when no search waits."""
    waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
    return sorted(exchange.glob("requests*.jsonl")) if waiting else []


def _replies(exchange: Path) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_size) for path in exchange.glob("*replies*.jsonl"))


def prepare_knowledge(config: RunConfig, layout: RunLayout) -> KnowledgeStore:
    """The experiment's knowledge base, begun from `--knowledge-base` or the shipped seed. Raises KnowledgeError.

    A knowledge base given later is merged in; statistics are kept by run, so merging it again changes nothing.
    """
    store = KnowledgeStore(layout.knowledge_base)
    given = config.knowledge_base
    created = store.create(given)
    if given is not None and not created and given.resolve() != layout.knowledge_base.resolve():
        store.merge([given])
    store.load()
    return store


def spending(ledger: CostLedger) -> Spending:
    """Totals of a ledger."""
    totals = ledger.totals()
    return Spending(
        calls=totals.calls,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        dollars=totals.dollars,
        estimated=totals.estimated,
    )


def _view(
    request: RunRequest, problems: list[Problem], config: RunConfig, ledger: CostLedger, console: Console
) -> View:
    if not console.is_terminal:
        return PlainView(Console(stderr=True))
    return LiveView(
        console,
        [str(problem.id) for problem in problems],
        config.search.rounds * config.search.rollouts * config.search.steps,
        lambda: spending(ledger),
        config.budget.minutes * 60 if config.budget.minutes else None,
    )


def _record(request: RunRequest, layout: RunLayout, choice: DeviceChoice, size: Size) -> RunRecord:
    """Write `run.json`; a resumed run keeps its name."""
    path = layout.run / "run.json"
    name = RunRecord.model_validate_json(path.read_bytes()).run if path.exists() else uuid.uuid4().hex[:12]
    record = RunRecord(
        run=name,
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        config=request.config,
        size=size,
        device=choice.device.facts,
        device_reason=choice.reason,
        model_reason=request.model_reason,
        versions={"kernelblaster": __version__, "python": platform.python_version(), "system": platform.platform()},
    )
    path.write_text(record.model_dump_json(indent=1, exclude={"config": {"model": {"api_key"}}}))
    return record


def _set_aside(layout: RunLayout, problems: list[Problem]) -> None:
    """`--no-resume`: move earlier results out of the way; nothing is deleted."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for problem in problems:
        directory = layout.problem(problem)
        if directory.exists():
            directory.rename(directory.with_name(f"{directory.name}.before-{stamp}"))


def _forget_failures(layout: RunLayout, problems: list[Problem]) -> None:
    """`--retry`: search again, in a fresh directory, where a problem failed or nothing was found."""
    again = (OutcomeStatus.FAILED, OutcomeStatus.NO_IMPROVEMENT)
    stale = []
    for problem in problems:
        outcome = finished_outcome(layout.problem(problem))
        if outcome is not None and outcome.status in again:
            stale.append(problem)
    _set_aside(layout, stale)
