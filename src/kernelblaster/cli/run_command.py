"""What `kernelblaster run` does, from a request to an exit code: choose, set up, search, sum up."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from kernelblaster.agent.sources import launcher_declaration
from kernelblaster.agent.state import OutcomeStatus
from kernelblaster.cli import terminal
from kernelblaster.cli.live import LiveView, PlainView, RunView
from kernelblaster.cli.progress import Progress
from kernelblaster.cli.summary_table import print_summary
from kernelblaster.config import ModelKind, RunConfig
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.batch_exchange import ExchangeFolder
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.recorded import RecordedModel
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.families import family_of
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Problem
from kernelblaster.records.layout import ASIDE, RunLayout
from kernelblaster.records.run_record import RunRecord, new_record, read_record
from kernelblaster.records.searches import check_search
from kernelblaster.records.summary import ProblemSummary, RunSummary, Spending
from kernelblaster.replay.buffer import ReplayBuffer
from kernelblaster.runs.choices import (
    DeviceChoice,
    choose_device,
    refuse_self_checking,
    refuse_unknown_size,
    timed_size,
)
from kernelblaster.runs.execute import RunParts, execute, finished_outcome
from kernelblaster.runs.interrupts import run_to_end
from kernelblaster.runs.progress import ProgressDevice, ProgressModel
from kernelblaster.storage.atomic import sweep_partial_files, write_atomically

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


def load_problems(request: RunRequest) -> list[Problem]:
    """The problems asked for. Raises UsageError when there are none, or one that cannot be judged here."""
    if request.problem_dir is not None:
        problems = [load_problem(request.problem_dir)]
    else:
        dataset = Dataset(request.dataset_dir or data_dir() / request.config.dataset)
        problems = list(dataset.select(subset=request.subset, numbers=request.problem_numbers))
    refuse_self_checking(problems, request.config)
    refuse_unknown_size(problems, request.config)
    for problem in problems:
        if not problem.weakly_verified:
            # Of many problems one that no prompt can tell of would otherwise end a run that has gone on for hours.
            family_of(problem.reference_path)
            launcher_declaration(problem.driver_path.read_text(encoding="utf-8"))
    return problems


def run_command(request: RunRequest) -> int:
    """Run; returns the exit code. Raises KernelBlasterError."""
    console = terminal.console(stderr=request.json_output)
    problems = load_problems(request)
    layout = RunLayout.of(request.config)
    with Progress() as progress:
        if request.config.model.kind is ModelKind.OPENAI_API and _to_search(request, problems, layout):
            # The SDK takes half a second to import, and the other models do not need it.
            from kernelblaster.models.probe import check_model

            progress.tell("asking the model's endpoint whether it can be used")
            check_model(request.config.model)
        choice = choose_device(request.config, progress.tell)
    facts = choice.device.facts
    console.print(f"device: {facts.name} ({facts.arch}): {choice.reason}", markup=False, soft_wrap=True)
    console.print(f"model:  {request.model_reason}", markup=False, soft_wrap=True)
    layout.run.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(layout.lock, timeout=0):
            sweep_partial_files(layout.run)
            summary = _run_locked(request, problems, choice, layout, console)
    except Timeout:
        raise UsageError(
            f"another process is working in {layout.run}", hint="wait for it, or use another --experiment"
        ) from None
    write_atomically(layout.summary, summary.model_dump_json(indent=1))
    if request.json_output:
        terminal.print_json(summary)
    else:
        print_summary(console, summary)
    return int(summary.exit_code)


def _run_locked(
    request: RunRequest, problems: list[Problem], choice: DeviceChoice, layout: RunLayout, console: Console
) -> RunSummary:
    config, facts = request.config, choice.device.facts
    began = time.monotonic()
    record = _begin(request, problems, choice, layout)
    finished = sum(finished_outcome(directory) is not None for directory in _directories(layout, problems))
    if finished:
        told = f"{finished} of {len(problems)} problems finished before: their results are shown, not searched for"
        console.print(f"{told}; --no-resume searches anew", markup=False, soft_wrap=True)
    knowledge = prepare_knowledge(config, layout)
    ledger = CostLedger(layout.ledger, config.budget)
    exchange = request.exchange or layout.exchange
    model = build_model(config.model, exchange, ledger, facts.name)
    with InputStore() as inputs, _view(problems, config, facts, ledger, console) as view:
        device = ProgressDevice(choice.device, view.tell)
        parts = RunParts(
            run=record.run,
            config=config,
            size=record.size,
            layout=layout,
            evaluator=Evaluator(
                device, inputs, config.evaluation, record.size, config.libraries, precision=config.precision
            ),
            model=ProgressModel(model, view.tell),
            knowledge=knowledge,
            replay=ReplayBuffer(layout.replay),
            watchers=(view,),
            recording=model.identity if isinstance(model, RecordedModel) else None,
        )
        rows, stopped = _search(request, parts, problems, exchange, ledger)
        if stopped is None:
            ledger.all_kept()
    knowledge.snapshot(record.run)
    knowledge.render()
    summary = RunSummary(
        run=record.run,
        device=facts,
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


def _begin(request: RunRequest, problems: list[Problem], choice: DeviceChoice, layout: RunLayout) -> RunRecord:
    """Take over or set aside what earlier starts left, and write `run.json`. Raises UsageError.

    The run keeps its name over all its starts.
    """
    config = request.config
    record = new_record(
        config, timed_size(config, choice.device.facts), choice.device.facts, choice.reason, request.model_reason
    )
    stale: list[Path] = [] if request.resume else _directories(layout, problems)
    if layout.record.exists():
        earlier = read_record(layout.record)
        if not earlier.comparable(record):
            if request.resume:
                raise UsageError(
                    f"{layout.run} holds results of {earlier.conditions}; now it would be {record.conditions}",
                    hint="use another --experiment, or --no-resume to set those results aside",
                )
            stale = layout.problems()
        record = record.model_copy(update={"run": earlier.run})
    _set_aside(stale)
    if request.retry:
        _set_aside(_fruitless(layout, problems))
    for problem in problems:
        check_search(layout.problem(problem), problem)
    write_atomically(
        layout.record, record.model_dump_json(indent=1, exclude={"config": {"model": {"api_key", "base_url"}}})
    )
    return record


def _search(
    request: RunRequest, parts: RunParts, problems: list[Problem], exchange: Path, ledger: CostLedger
) -> tuple[list[ProblemSummary], str | None]:
    """Search; with `--wait`, start again whenever the exchange folder has changed, while the cap on minutes lasts."""
    while True:
        # Looked at before the search: a reply that comes while it still evaluates has to start it again.
        before = _replies(exchange)
        rows, stopped = run_to_end(execute(parts, problems))
        waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
        if not (waiting and request.wait):
            return rows, stopped
        while _replies(exchange) == before:
            left = ledger.seconds_left()
            if left is not None and left <= 0:
                return rows, "the cap on minutes was reached while replies were awaited"
            time.sleep(POLL_SECONDS)


def _pending(exchange: Path, rows: list[ProblemSummary]) -> list[Path]:
    """Files that someone has to answer; none when no search waits."""
    waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
    return sorted(set(ExchangeFolder(exchange).outstanding().values())) if waiting else []


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
    problems: list[Problem], config: RunConfig, facts: DeviceFacts, ledger: CostLedger, console: Console
) -> RunView:
    modelled = facts.kind is DeviceKind.EMULATED
    if not console.is_terminal:
        return PlainView(terminal.console(stderr=True), modelled=modelled)
    return LiveView(
        console,
        [str(problem.id) for problem in problems],
        config.search.rounds * config.search.rollouts * config.search.steps,
        lambda: spending(ledger),
        ledger.seconds_left,
        modelled=modelled,
    )


def _to_search(request: RunRequest, problems: list[Problem], layout: RunLayout) -> bool:
    """Whether anything is left to search for."""
    known = (finished_outcome(directory) for directory in _directories(layout, problems))
    return not request.resume or request.retry or any(outcome is None for outcome in known)


def _directories(layout: RunLayout, problems: list[Problem]) -> list[Path]:
    return [layout.problem(problem) for problem in problems]


def _set_aside(directories: Iterable[Path]) -> None:
    """Move earlier results out of the way; nothing is deleted."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for directory in directories:
        if directory.exists():
            directory.rename(directory.with_name(f"{directory.name}{ASIDE}{stamp}"))


def _fruitless(layout: RunLayout, problems: list[Problem]) -> list[Path]:
    """`--retry`: where a problem failed or nothing was found."""
    again = (OutcomeStatus.FAILED, OutcomeStatus.NO_IMPROVEMENT)
    outcomes = {directory: finished_outcome(directory) for directory in _directories(layout, problems)}
    return [directory for directory, outcome in outcomes.items() if outcome is not None and outcome.status in again]
