"""Search for faster kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kernelblaster.agent.events import Event
from kernelblaster.api.own_parts import require_device, require_model
from kernelblaster.api.problems import ProblemName, load_problem
from kernelblaster.config import RunConfig
from kernelblaster.config.sources import EffectiveConfig, Origin
from kernelblaster.devices.base import Device
from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel
from kernelblaster.problems.interchange.kernelbench.evaluation_mode import evaluation_notes
from kernelblaster.problems.interchange.kernelbench.meta_run import FULL
from kernelblaster.problems.interchange.kernelbench.small_size import size_notes
from kernelblaster.problems.problem import Problem
from kernelblaster.records.summary import RunSummary
from kernelblaster.registry import require_callable, require_offers
from kernelblaster.runs.module_problems import problem_of_module
from kernelblaster.runs.observing import Callbacks, RunObserver
from kernelblaster.runs.optimize import RunPlan, run_plan

PROBLEMS = "problems"
"""Below `config.out`: problems that were made of KernelBench files."""
_log = logging.getLogger(__name__)


def optimize(
    problems: ProblemName | Sequence[ProblemName],
    *,
    config: RunConfig | EffectiveConfig | None = None,
    model: ChatModel | str | None = None,
    device: Device | str | None = None,
    observer: RunObserver | None = None,
    on_event: Callable[[Event], object] | None = None,
    on_stage: Callable[[str], object] | None = None,
    exchange: Path | None = None,
    wait: bool = False,
    resume: bool = True,
    retry: bool = False,
) -> RunSummary:
    """Search for a faster kernel of each problem, until all are finished, wait for replies, or a budget is reached.

    Everything is kept below `config.out`: the same call after an interruption, however it came, continues.

    Args:
        problems: one or many. A KernelBench file (`*.py`) becomes a problem below `config.out`, whose first kernel the
            model writes.
        config: width and depth of the search, budgets, how hard candidates are checked; the defaults if None. One of
            `load_config` is recorded with the origins of its values.
        model: a `ChatModel` of your own, or a kind (`openai_api`, `batch_exchange`, `recorded`, `auto`); as configured
            if None.
        device: a `Device` of your own, or `cuda`, `emulated`, `auto`; as configured if None.
        observer: told everything that happens; instead of `on_event` and `on_stage`.
        on_event: gets each event of the search.
        on_stage: gets a few words on what takes time.
        exchange: folder of a batch exchange; inside the run if None.
        wait: wait for the replies of a batch exchange instead of returning with `pending_requests`.
        resume: continue what an earlier call left; otherwise it is moved aside.
        retry: search again where nothing was found.

    Raises:
        UsageError: nothing can be searched as it is asked for.
        DeviceError, ModelError: device or model failed; the same call continues.
    """
    if observer is not None and (on_event or on_stage):
        raise UsageError("an observer beside on_event or on_stage", hint="give one of the two")
    require_model(model)
    require_device(device)
    require_callable("on_event", on_event)
    require_callable("on_stage", on_stage)
    if observer is not None:
        require_offers("observer", observer, RunObserver)
    settings, origins = _settings(config, model, device)
    plan = RunPlan(
        config=settings,
        origins={path: str(origin) for path, origin in origins.items()},
        problems=_problems(problems, settings),
        model=None if isinstance(model, str) else model,
        device=None if isinstance(device, str) else device,
        exchange=exchange,
        wait=wait,
        resume=resume,
        retry=retry,
    )
    return run_plan(plan, observer or Callbacks(on_event, on_stage))


def _settings(
    config: RunConfig | EffectiveConfig | None, model: ChatModel | str | None, device: Device | str | None
) -> tuple[RunConfig, Mapping[str, Origin]]:
    """The configuration with the model and device that are given by name, and where its values come from."""
    origins: Mapping[str, Origin] = {}
    if isinstance(config, EffectiveConfig):
        origins, config = config.origins, config.config
    config = config or RunConfig()
    if isinstance(model, str):
        config = config.model_copy(update={"model": config.model.model_copy(update={"kind": model})})
    if isinstance(device, str):
        config = config.model_copy(update={"device": device})
    return config, origins


def _problems(problems: ProblemName | Sequence[ProblemName], config: RunConfig) -> tuple[Problem, ...]:
    """The problems of a search, at least one. Raises UsageError."""
    chosen = (problems,) if isinstance(problems, Problem | str | Path) else tuple(problems)
    if not chosen:
        raise UsageError("no problem is given", hint="name at least one, such as level1/23")
    return tuple(_problem(problem, config) for problem in chosen)


def _problem(problem: ProblemName, config: RunConfig) -> Problem:
    if isinstance(problem, str | Path) and Path(problem).suffix == ".py":
        if Path(problem).is_dir():
            return load_problem(Path(problem))
        made = problem_of_module(Path(problem), config.out / PROBLEMS)
        for note in (*evaluation_notes(made, FULL), *size_notes(made)):
            _log.warning("%s: %s", problem, note)
        return made
    return load_problem(problem, dataset=config.dataset)
