"""The environment over OpenEnv: one session per websocket, all with one judge. Needs the extra `env`.

Steps run on a thread of their session, never on the event loop. Over HTTP nothing is remembered between requests: a
step that names its `problem_id` scores one submission, and a state is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from openenv.core.env_server.http_server import create_app as openenv_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import (
    Action,
    ConcurrencyConfig,
    EnvironmentMetadata,
    HealthResponse,
    HealthStatus,
    Observation,
    State,
)
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from kernelblaster.environment.actions import EpisodeState, KernelAction
from kernelblaster.environment.catalogue import problem_identifier
from kernelblaster.environment.census import SessionCensus
from kernelblaster.environment.episode import EpisodeOver, KernelEnvironments
from kernelblaster.environment.fair_queue import EnvironmentBusy
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.observation import KernelObservation
from kernelblaster.environment.remote_judge import (
    CONDITIONS,
    EVALUATE,
    SANITIZE,
    EvaluationRequest,
    SourceRequest,
    answer,
    conditions_of,
    sanitized,
)
from kernelblaster.environment.sockets import IN_REQUEST, IdleSockets, LeavingClients, MarkedRequests
from kernelblaster.errors import KernelBlasterError, MachineError
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.tags import Split
from kernelblaster.version import __version__

NAME = "kernelblaster"
MOST_MESSAGE_BYTES = 16 << 20
"""Of a request over HTTP; a server of websockets takes as much in a frame."""
SPLIT_TYPES: Mapping[str, str] = {Split.TRAIN: "train", Split.HELD_OUT: "test"}
"""OpenEnv's types of task lists."""
OTHER_TYPE = "validation"
"""What OpenEnv says of any other list; ours hold problems of both kinds."""
STATE, HEALTH = "/state", "/health"
STATE_HINT = "ask on the websocket /ws on which it was begun; an observation holds turn, max_turns and done, too"
Value = TypeVar("Value")


class ServedAction(KernelAction, Action):
    """`KernelAction` on the wire."""


class ServedObservation(KernelObservation, Observation):
    """`KernelObservation` on the wire."""


class ServedState(EpisodeState, State):
    """`EpisodeState` on the wire."""


class RequestRefused(RuntimeError):
    """What a client is told when a request cannot be served: one line with a hint.

    Args:
        error: why.
    """

    def __init__(self, error: KernelBlasterError) -> None:
        super().__init__(f"{error.message}; {error.hint}" if error.hint else error.message)
        self.status = 503 if isinstance(error, MachineError) else 400
        self.retry_after_s = error.retry_after_s if isinstance(error, EnvironmentBusy) else None


class KernelEnvironment(Environment[ServedAction, ServedObservation, ServedState]):
    """One session on the wire.

    Args:
        environments: what all sessions share.
        census: counts it, unless it is made for one request over HTTP.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, environments: KernelEnvironments, census: SessionCensus) -> None:
        super().__init__()
        self._episodes = environments.session()
        self._catalogue = environments.catalogue
        self._census = census
        self._slot = None if IN_REQUEST.get() else census.enter()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **arguments: Any) -> ServedObservation:
        """Begin an episode; arguments as of `ResetRequest`. Raises Refused."""
        with self._stepping():
            return _served(_told(lambda: self._episodes.reset(seed=seed, episode_id=episode_id, **arguments)))

    def step(self, action: ServedAction, timeout_s: float | None = None, **_: Any) -> ServedObservation:
        """Judge a submission, however long that takes: limits are the judge's. Raises Refused."""
        with self._stepping():
            return _served(_told(lambda: self._episodes.step(action)))

    def _stepping(self) -> AbstractContextManager[None]:
        return nullcontext() if self._slot is None else self._census.stepping(self._slot)

    @property
    def state(self) -> ServedState:
        """Where the episode stands."""
        return ServedState.model_validate(self._episodes.state.model_dump())

    def get_metadata(self) -> EnvironmentMetadata:
        """What `/metadata` shows."""
        return EnvironmentMetadata(
            name=NAME,
            version=__version__,
            description=f"Write faster CUDA kernels: {len(self._catalogue.problems)} problems, each judged against "
            "its PyTorch reference and timed against its own start.",
        )

    def close(self) -> None:
        """End the session, once what runs has ended; again does nothing."""
        self._episodes.close()
        if self._slot is not None:
            self._census.leave(self._slot)

    def list_splits(self) -> list[dict[str, object]]:
        """The task lists: name, type, and how many problems each has."""
        splits = self._catalogue.splits()
        return [
            {"name": one, "type": SPLIT_TYPES.get(one, OTHER_TYPE), "num_tasks": self.num_tasks(one)} for one in splits
        ]

    def list_tasks(self, split: str) -> list[dict[str, object]]:
        """The problems of a task list. Raises RequestRefused."""
        return self.get_task_range(split)

    def num_tasks(self, split: str) -> int:
        """How many problems a task list has. Raises RequestRefused."""
        return len(_told(lambda: self._catalogue.tasks(split)))

    def get_task(self, split: str, index: int) -> dict[str, object]:
        """One problem, counted from 0. Raises RequestRefused."""
        return _task(_told(lambda: self._catalogue.at(split, index)), index)

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, object]]:
        """The problems from `start`, counted from 0, up to before `stop`. Raises RequestRefused."""
        found = _told(lambda: self._catalogue.range(split, start, stop))
        return [_task(problem, index) for index, problem in enumerate(found, start or 0)]


def create_app(
    environments: KernelEnvironments, capacity: int, idle_s: float = math.inf, *, judging: bool = False
) -> FastAPI:
    """The application: OpenEnv's routes over `environments`, and `/load`: its slots, how much is judged and waits.

    Args:
        environments: made once; its judge is owned by the caller.
        capacity: sessions at once; one more is told CAPACITY_REACHED.
        idle_s: silence of a client that ends its session.
        judging: serve a trainer's `RemoteJudge`, too, which is told all of an evaluation.
    """
    census = SessionCensus(capacity)
    created = IN_REQUEST.set(True)  # the session of OpenEnv's page, which begins here, holds no slot
    try:
        app: FastAPI = openenv_app(
            partial(KernelEnvironment, environments, census),
            ServedAction,
            ServedObservation,
            env_name=NAME,
            concurrency_config=ConcurrencyConfig(max_concurrent_envs=capacity),
            state_cls=ServedState,
        )
    finally:
        IN_REQUEST.reset(created)
    app.add_exception_handler(RequestRefused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _invalid)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MOST_MESSAGE_BYTES)
    app.add_middleware(LeavingClients)
    if math.isfinite(idle_s):
        app.add_middleware(IdleSockets, after_s=idle_s)

    app.add_middleware(MarkedRequests)
    app.add_api_route("/load", partial(_load, environments, census))
    _refuse_state(app)
    if _without(app, HEALTH):
        app.add_api_route(HEALTH, partial(_health, environments.judge), response_model=HealthResponse)
    if judging:
        _add_judge(app, environments)
    return app


def _refuse_state(app: FastAPI) -> None:
    """OpenEnv answers `GET /state` with the state of an environment that is made for the question alone."""

    def state() -> ServedState:
        raise RequestRefused(EpisodeOver("no episode lives between requests over HTTP", hint=STATE_HINT))

    if _without(app, STATE):  # a mode without episodes has none
        app.add_api_route(STATE, state)


def _without(app: FastAPI, path: str) -> bool:
    """Take OpenEnv's own route away. Whether there was one."""
    routes = [route for route in app.router.routes if getattr(route, "path", "") != path]
    found = len(routes) < len(app.router.routes)
    app.router.routes[:] = routes
    return found


def _health(judge: SharedJudge) -> Response:
    """Healthy unless a submission with a known verdict was judged otherwise last time."""
    failure = judge.failure
    if failure is None:
        return JSONResponse({"status": HealthStatus.HEALTHY, "ready": True})
    told = {"status": HealthStatus.UNHEALTHY, "ready": False, "reason": f"{failure.message}; {failure.hint}"}
    return JSONResponse(told, 503)


def _add_judge(app: FastAPI, environments: KernelEnvironments) -> None:
    judge, catalogue = environments.judge, environments.catalogue

    def conditions() -> Response:
        return _json(conditions_of(judge))

    def evaluate(asked: EvaluationRequest, request: Request) -> Response:
        return _json(_told(lambda: answer(judge, catalogue, asked, _trainer(request))))

    def sanitize(asked: SourceRequest, request: Request) -> Response:
        return _json(_told(lambda: sanitized(judge, catalogue, asked, _trainer(request))))

    app.add_api_route(CONDITIONS, conditions, response_model=None)
    app.add_api_route(EVALUATE, evaluate, methods=["POST"], response_model=None)
    app.add_api_route(SANITIZE, sanitize, methods=["POST"], response_model=None)


def _trainer(request: Request) -> str:
    """In whose line a trainer's submissions wait: one per machine."""
    return "judge" if request.client is None else f"judge {request.client.host}"


def _json(found: BaseModel) -> Response:
    return Response(found.model_dump_json(), media_type="application/json")


def _load(environments: KernelEnvironments, census: SessionCensus) -> dict[str, object]:
    found, told = environments.judge.load, dict[str, object](sessions=asdict(census.count))
    return told if found is None else {**asdict(found), "retry_after_s": found.retry_after_s, **told}


def _refused(_: Request, error: Exception) -> JSONResponse:
    """The answer over HTTP, where OpenEnv leaves out the text of an exception."""
    assert isinstance(error, RequestRefused)
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    return JSONResponse({"detail": str(error)}, error.status, headers)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """What is wrong with a request, without the values that were sent: no JSON holds a NaN, and they may be long."""
    assert isinstance(error, RequestValidationError | HTTPException)
    status, told = (422, error.errors()) if isinstance(error, RequestValidationError) else _told_by(error)
    if not isinstance(told, str):
        told = [{key: one[key] for key in ("type", "loc", "msg") if key in one} for one in told]
    return JSONResponse({"detail": told}, status, getattr(error, "headers", None))


def _told_by(error: HTTPException) -> tuple[int, Any]:
    return error.status_code, error.detail


def _served(observation: KernelObservation) -> ServedObservation:
    return ServedObservation.model_validate(observation.model_dump())


def _told(serve: Callable[[], Value]) -> Value:
    """The result. Raises Refused with message and hint, for OpenEnv sends the text of an exception alone."""
    try:
        return serve()
    except KernelBlasterError as error:
        raise RequestRefused(error) from error


def _task(problem: Problem, index: int) -> dict[str, object]:
    return {
        "id": problem_identifier(problem),
        "index": index,
        "level": problem.id.level,
        "tags": [str(tag) for tag in problem.tags],
    }
