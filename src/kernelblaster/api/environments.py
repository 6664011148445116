"""Kernels as tasks for reinforcement learning: in this process, or served over OpenEnv."""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from kernelblaster.api.evaluating import Tell, open_evaluator
from kernelblaster.api.problems import DatasetName, list_problems
from kernelblaster.config import RunConfig
from kernelblaster.config.sources import load_config
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.baselines import EpisodeBaseline, PytorchClock, require_possible
from kernelblaster.environment.canaries import WatchedJudge, canary_problem
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.fair_queue import FairQueue
from kernelblaster.environment.judging import Judge, SharedJudge
from kernelblaster.environment.rewards import RewardOptions
from kernelblaster.environment.starting import StartingServer
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.timing.pytorch_times import read_times
from kernelblaster.paths import how_to_install
from kernelblaster.python_candidates.warm_recorders import WarmRecorders
from kernelblaster.runs.pytorch_clock import PytorchGpuClock

CAPACITY = 64
WAITING = 64
IDLE_S = 3600.0
"""Silence of a client that ends its session: longer than a trainer takes between two turns."""
MOST_WORKERS = 8
SPARE = 2
"""Recorders of Python candidates that wait, once the first such candidate has come."""
HOST = "127.0.0.1"
"""The server asks nobody who he is: others than this machine reach it only where that is asked for."""
PORT = 8000
CANARY_MINUTES = 30.0
"""Of servers."""
PONG_S = 300.0
"""Silence of a client after which its socket is given up."""


class Opening(Protocol):
    """Opens what a server serves: `open_environment` with all of its arguments but one."""

    def __call__(self, *, on_stage: Tell) -> AbstractContextManager[KernelEnvironments]:
        """The environments; told is what takes time."""
        ...


@contextmanager
def open_environment(
    config: RunConfig | None = None,
    *,
    dataset: DatasetName | None = None,
    reward: str = "seed",
    speedup_cap: float = 4.0,
    reward_grid: float = 0.0,
    baseline: EpisodeBaseline | str = EpisodeBaseline.START,
    pytorch_times: Path | None = None,
    canary_minutes: float | None = None,
    workers: int | None = None,
    waiting: int = WAITING,
    sanitize: bool = True,
    confirm: bool = True,
    asked: Sequence[str] = (),
    device: Device | str | None = None,
    on_stage: Tell | None = None,
) -> Iterator[KernelEnvironments]:
    """What makes sessions, `KernelEnvironments.session()`, over one evaluator that is closed at the end.

    Args:
        config: data set, precision, size, and how hard candidates are checked; the defaults if None.
        dataset: a data set other than the configured one.
        reward: name of a scheme of `REWARDS`.
        speedup_cap: speed-up at which the bonus of the scheme `seed` is full.
        reward_grid: width to which a bonus is rounded; 0 for none.
        baseline: what speed-ups are against, where `reset` does not say it; PyTorch has no time on an emulated GPU.
        pytorch_times: file of `problems baseline` with PyTorch's times on this GPU; those that ship if None. What is
            in neither is timed when a reset first asks for it.
        canary_minutes: three submissions with known verdicts are judged now, and at the first submission after so
            many minutes (`environment.canaries`); never if None.
        workers: submissions judged at once, in fair turns of sessions; as many as are submitted if None.
        waiting: submissions that may wait for a turn; one more raises EnvironmentBusy.
        sanitize: run the device's sanitizers over what crashes, is wrong or differs at the tier `full`, where a step
            does not say.
        confirm: measure a speed-up beyond `SUSPICIOUS_SPEEDUP` on a GPU twice, and take the lower.
        asked: names and task lists that will be asked for; one that is not there is refused before a device is opened.
        device, on_stage: see `open_evaluator`.

    Raises UsageError, DeviceError.
    """
    config = config or RunConfig()
    options = RewardOptions(speedup_cap, reward_grid)
    settings = EnvironmentSettings(reward, options, _baseline(baseline), sanitize, confirm)
    settings.scheme()
    times = None if pytorch_times is None else read_times([pytorch_times])
    catalogue = environment_problems(config, dataset=dataset)
    catalogue.choose(asked)
    with open_evaluator(config, device=device, on_stage=on_stage) as evaluator, WarmRecorders(SPARE) as recorders:
        require_possible(settings.baseline, evaluator.facts)
        evaluator.record = recorders.record
        judge: Judge = evaluator
        if canary_minutes is not None:
            judge = watched = WatchedJudge(evaluator, canary_problem(catalogue.problems), 60.0 * canary_minutes)
            (on_stage or _nobody)("judging three submissions with known verdicts")
            watched.check()
        queue = None if workers is None else FairQueue(workers, waiting)
        try:
            yield KernelEnvironments(catalogue, SharedJudge(judge, queue, times, _clock(evaluator, on_stage)), settings)
        finally:
            if queue is not None:
                queue.close()


def _clock(judge: Evaluator, on_stage: Tell | None) -> PytorchClock | None:
    """Times PyTorch beside a judge's GPU; there is none beside an emulated one."""
    if judge.facts.kind is not DeviceKind.CUDA:
        return None
    return PytorchGpuClock(judge.precision, judge.workload, on_stage or _nobody)


def _baseline(name: str) -> EpisodeBaseline:
    """Raises UsageError where there is none of that name."""
    try:
        return EpisodeBaseline(name)
    except ValueError as error:
        raise UsageError(f"there is no baseline {name!r}", hint=f"choose from {', '.join(EpisodeBaseline)}") from error


def default_workers() -> int:
    """Submissions that a server judges at once: compilers take a processor each, a GPU measures one at a time."""
    return min(MOST_WORKERS, len(os.sched_getaffinity(0)))


def environment_problems(config: RunConfig | None = None, *, dataset: DatasetName | None = None) -> Catalogue:
    """The problems of an environment by name, of `dataset` or the configured data set. Raises UsageError."""
    return Catalogue(list_problems(dataset=dataset or (config or RunConfig()).dataset))


def environment_app(config: RunConfig | None = None, *, capacity: int = CAPACITY) -> Any:
    """An ASGI application for a server of your own, as configured if no configuration is given.

    Its evaluator is closed when the process ends. Raises MachineError without the extra `env`, UsageError, DeviceError.
    """
    server = _server()
    with ExitStack() as stack:
        environments = stack.enter_context(
            open_environment(config or load_config().config, canary_minutes=CANARY_MINUTES, workers=default_workers())
        )
        app = server.create_app(environments, capacity, IDLE_S)
        atexit.register(stack.pop_all().close)
    return app


def serve_environment(
    environments: KernelEnvironments | Opening,
    *,
    host: str = HOST,
    port: int = PORT,
    capacity: int = CAPACITY,
    idle_s: float = IDLE_S,
    judging: bool = False,
    on_stage: Tell | None = None,
    on_bound: Callable[[int], object] | None = None,
    on_ready: Callable[[KernelEnvironments, int], object] | None = None,
) -> None:
    """Serve until the process is interrupted.

    Args:
        environments: what all sessions share; or what opens it, such as `functools.partial(open_environment, config)`,
            which is called with `on_stage` and closed at the end. Meanwhile every request is answered with 503 and what
            is being done.
        host, port: where; port 0 for any that is free.
        capacity: sessions at once.
        idle_s: silence of a client that ends its session.
        judging: judge for a training elsewhere, too (`train.judge`), which is told all of an evaluation.
        on_stage: told what takes time until it serves.
        on_bound: told the port, when it is this server's.
        on_ready: told what is served and the port, when all is ready.

    Raises MachineError without the extra `env`, UsageError for an address that cannot be had, and what opening raises.
    """
    tell = on_stage or _nobody
    tell("loading the server")
    server = _server()
    import uvicorn

    with _bound(host, port) as listening, ExitStack() as opened:
        bound = listening.getsockname()[1]
        if on_bound is not None:
            on_bound(bound)
        if isinstance(environments, KernelEnvironments):
            ready = environments
        else:
            ready = _opened(environments, listening, tell, opened)
        app = server.create_app(ready, capacity, idle_s, judging=judging)
        config = uvicorn.Config(app, ws_ping_timeout=PONG_S, log_level="warning")
        if on_ready is not None:
            on_ready(ready, bound)
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again that it has ended for
            uvicorn.Server(config).run(sockets=[listening])


def _opened(opening: Opening, listening: socket.socket, tell: Tell, stack: ExitStack) -> KernelEnvironments:
    """What `opening` opens, until the stack ends; whoever connects meanwhile is told what is done."""
    with StartingServer(listening) as starting:

        def told(stage: str) -> None:
            starting.tell(stage)
            tell(stage)

        return stack.enter_context(opening(on_stage=told))


def _nobody(stage: str) -> None:
    """Is told."""


def _bound(host: str, port: int) -> socket.socket:
    """A socket at an address. Raises UsageError, before anything is served, where it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"nothing can be served on {host}:{port}: {error.strerror}", hint="choose another --port or --host"
        ) from error


def _server() -> Any:
    try:
        from kernelblaster.environment import server
    except ImportError as error:
        raise MachineError(
            f"the environment cannot be served: {error}", hint=f"install the extra: {how_to_install('env')}"
        ) from error
    return server
