"""One run, from a plan to a summary: choose device and model, prepare the directory, search, sum up.

Continuing an earlier start is the same call again. Nothing here prints; an observer is told.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.config import GIVEN, BudgetConfig, ModelKind, RunConfig, SearchPart
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.registry import OpenedDevice
from kernelblaster.errors import KernelBlasterError, UsageError
from kernelblaster.models.base import ChatModel
from kernelblaster.models.batch_exchange import ExchangeFolder
from kernelblaster.models.counted import CountedModel
from kernelblaster.models.default_caps import require_prices, with_default_cap
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger, stored_totals
from kernelblaster.models.recorded import RecordedModel
from kernelblaster.problems.problem import Problem
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.run_record import RunRecord, new_record
from kernelblaster.records.summary import ProblemSummary, RunSummary
from kernelblaster.records.whole_run import spending_of
from kernelblaster.runs.choices import (
    choose_device,
    choose_model_config,
    expected_costs,
    refuse_self_checking,
    refuse_unknown_workload,
    timed_workload,
)
from kernelblaster.runs.execute import RunParts, execute
from kernelblaster.runs.interrupts import run_to_end
from kernelblaster.runs.judges import opened_judge, refuse_given_device
from kernelblaster.runs.observing import RunChoices, RunInProgress, RunObserver
from kernelblaster.runs.preparation import (
    begin,
    check_problems,
    finished_before,
    left_to_search,
    prepare_experience,
    sole_use,
)
from kernelblaster.runs.progress import ProgressModel
from kernelblaster.runs.registered_names import require_registered
from kernelblaster.runs.starting_knowledge import KnowledgeChoice, choose_knowledge
from kernelblaster.runs.summing_up import RunStart

POLL_SECONDS = 5.0


@dataclass(frozen=True)
class RunPlan:
    """What a run is asked to do.

    Attributes:
        config: the configuration, complete but for what device and model decide.
        problems: what is optimised.
        model: writes candidates; None for the one that `config.model` names.
        device: where candidates run; None for the one that `config.device` names.
        exchange: folder of a batch exchange; None for the run's own.
        wait: wait for replies of a batch exchange instead of returning with what is pending.
        resume: continue what an earlier start left; otherwise it is moved aside.
        retry: search again where nothing was found.
        origins: where values of the configuration come from, in words; recorded.
    """

    config: RunConfig
    problems: tuple[Problem, ...]
    model: ChatModel | None = None
    device: Device | None = None
    exchange: Path | None = None
    wait: bool = False
    resume: bool = True
    retry: bool = False
    origins: Mapping[str, str] = field(default_factory=dict)


def run_plan(plan: RunPlan, observer: RunObserver) -> RunSummary:
    """Search every problem of a plan; returns when all are finished, wait for replies, or a budget is reached.

    Raises:
        UsageError: nothing can be searched as it is asked for, or another process works in the run's directory.
        ProblemError: a reference is random, or no prompt can tell of a problem.
        MachineError: a reference takes more memory than the host has.
        DeviceError: the device failed; the same plan continues.
        ModelError: the model cannot answer; the same plan continues.
    """
    plan, model_reason = _with_model(plan)
    if plan.device is not None:
        refuse_given_device(plan.config)
        plan = replace(plan, config=plan.config.model_copy(update={"device": str(plan.device.facts.kind)}))
    else:
        refuse_self_checking(plan.problems, plan.config)
    require_registered(plan.config)
    refuse_unknown_workload(plan.problems, plan.config)
    layout = RunLayout.of(plan.config)
    left = left_to_search(layout, plan.problems, resume=plan.resume, retry=plan.retry)
    check_problems(left, observer.tell)
    asked = plan.config.budget
    before = stored_totals(layout.ledger)
    caps = with_default_cap(asked, plan.config.model, before)
    require_prices(caps, plan.config.model, before)
    plan = replace(plan, config=plan.config.model_copy(update={"budget": caps}))
    if left:
        _check_endpoint(plan, observer)
    choice = _device(plan, observer)
    facts = choice.device.facts
    knowledge = choose_knowledge(plan.config, layout, facts)
    choices = RunChoices(
        facts=facts, device_reason=choice.reason, model_reason=model_reason, knowledge_reason=knowledge.reason
    )
    observer.chosen(choices)
    with sole_use(layout):
        return _run(plan, asked, choice.device, choices, knowledge, layout, observer)


def _with_model(plan: RunPlan) -> tuple[RunPlan, str]:
    """The plan with a model that is decided, and which it is. Raises UsageError."""
    if plan.model is not None:
        given = plan.config.model.model_copy(update={"kind": GIVEN, "name": plan.model.name})
        plan, reason = replace(plan, config=plan.config.model_copy(update={"model": given})), f"{given.name}: given"
    else:
        chosen = choose_model_config(plan.config.model, [str(problem.id) for problem in plan.problems])
        plan, reason = replace(plan, config=plan.config.model_copy(update={"model": chosen.config})), chosen.reason
    if plan.config.model.kind != ModelKind.BATCH_EXCHANGE and (plan.wait or plan.exchange is not None):
        raise UsageError(
            f"{'--wait' if plan.wait else '--exchange'} is for a batch exchange, the model {reason}",
            hint="add --model-kind batch_exchange",
        )
    return plan, reason


def _check_endpoint(plan: RunPlan, observer: RunObserver) -> None:
    """Ask whether the model can be used before anything is compiled. Raises ModelError."""
    if plan.config.model.kind == ModelKind.OPENAI_API:
        # The SDK takes half a second to import, and the other models do not need it.
        from kernelblaster.models.probe import check_model

        observer.tell("asking the model's endpoint whether it can be used")
        check_model(plan.config.model)


def _device(plan: RunPlan, observer: RunObserver) -> OpenedDevice:
    if plan.device is not None:
        return OpenedDevice(plan.device, "given")
    return choose_device(plan.config, observer.tell)


def _run(
    plan: RunPlan,
    asked: BudgetConfig,
    chosen_device: Device,
    choices: RunChoices,
    knowledge: KnowledgeChoice,
    layout: RunLayout,
    observer: RunObserver,
) -> RunSummary:
    """The run, once its directory is held."""
    config, facts = plan.config, choices.facts
    began = time.monotonic()
    exchange = plan.exchange or layout.exchange
    record = begin(_record(plan, choices), layout, plan.problems, exchange, resume=plan.resume, retry=plan.retry)
    finished = finished_before(layout, plan.problems)
    experience = prepare_experience(config, layout, knowledge.start)
    ledger = CostLedger(layout.ledger, config.budget)
    start = RunStart(record.run, config, facts, plan.problems, layout, ledger, began)
    model = CountedModel(plan.model, ledger) if plan.model else _built_model(config, exchange, ledger, facts)
    state = RunInProgress(
        config=config,
        problems=plan.problems,
        facts=facts,
        finished_before=finished,
        spending=lambda: spending_of(ledger.totals_of_start()),
        seconds_left=ledger.seconds_left,
        costs=expected_costs(config, asked, len(plan.problems) - finished, ledger),
    )
    with opened_judge(record, chosen_device, observer.tell) as judge, observer.searching(state):
        parts = RunParts(
            run=record.run,
            config=config,
            workload=record.workload,
            layout=layout,
            evaluator=judge,
            model=ProgressModel(model, observer.tell),
            experience=experience,
            watchers=(observer,),
            recorded=model if isinstance(model, RecordedModel) else None,
        )
        try:
            rows, stopped = _search(plan, parts, exchange, ledger)
        except (KeyboardInterrupt, KernelBlasterError) as ended:
            why = ended.message if isinstance(ended, KernelBlasterError) else "interrupted"
            observer.cut_off(start.keep_unfinished(why))
            raise
        if stopped is None:
            ledger.all_kept()
    experience.export()
    experience.exchange.snapshot(record.run)
    experience.exchange.render()
    experience.close()
    return start.keep(start.summary(rows, stopped, _pending(exchange, rows)))


def _built_model(config: RunConfig, exchange: Path, ledger: CostLedger, facts: DeviceFacts) -> ChatModel:
    return build_model(config.model, exchange, ledger, facts.name, archive=config.search.has(SearchPart.ARCHIVE))


def _record(plan: RunPlan, choices: RunChoices) -> RunRecord:
    """What this start is given."""
    config, facts = plan.config, choices.facts
    record = new_record(
        config, timed_workload(config, facts, plan.problems), facts, choices.device_reason, choices.model_reason
    )
    return record.model_copy(update={"origins": dict(plan.origins)})


def _search(
    plan: RunPlan, parts: RunParts, exchange: Path, ledger: CostLedger
) -> tuple[list[ProblemSummary], str | None]:
    """Search; a plan that waits starts again whenever the exchange folder has changed, while the minutes last."""
    while True:
        # Looked at before the search: a reply that comes while it still evaluates has to start it again.
        before = _replies(exchange)
        rows, stopped = run_to_end(execute(parts, plan.problems))
        waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
        if not (waiting and plan.wait):
            return rows, stopped
        while _replies(exchange) == before:
            left = ledger.seconds_left()
            if left is not None and left <= 0:
                return rows, "the cap on minutes was reached while replies were awaited"
            time.sleep(POLL_SECONDS)


def _pending(exchange: Path, rows: list[ProblemSummary]) -> list[Path]:
    """Files that someone has to answer; none when no search waits."""
    waiting = any(row.status is OutcomeStatus.WAITING for row in rows)
    return sorted(set(ExchangeFolder(exchange, silent=True).outstanding().values())) if waiting else []


def _replies(exchange: Path) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_size) for path in exchange.glob("*replies*.jsonl"))
