"""The client of a served environment. Needs the extra `env`.

Its limits fit evaluations: an answer may take as long as a build and a dozen timed requests do, and a socket outlives
the silence of a long generation.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Self

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from websockets.exceptions import InvalidStatus

from kernelblaster.environment.actions import EpisodeState, KernelAction
from kernelblaster.environment.fair_queue import retry_after
from kernelblaster.environment.observation import KernelObservation

ANSWER_S = 900.0
PONG_S = 300.0
STARTING_S = 2.0
"""Between two tries while a server says that it starts."""
_log = logging.getLogger(__name__)


class KernelEnvClient(EnvClient[KernelAction, KernelObservation, EpisodeState]):
    """Typed observations of a server. Arguments as of OpenEnv's client."""

    def __init__(self, base_url: str | None = None, **arguments: Any) -> None:
        limits = {"message_timeout_s": ANSWER_S, "websocket_ping_timeout_s": PONG_S}
        super().__init__(base_url, **{**limits, **arguments})

    async def _connect_async(self) -> Self:
        """A connection, once a server that starts is ready: for as long as an answer may take."""
        until, told = time.monotonic() + ANSWER_S, False
        while True:
            try:
                await super()._connect_async()
                return self
            except ConnectionError as error:
                if not _starts(error) or time.monotonic() + STARTING_S > until:
                    raise
                if not told:
                    _log.warning("the server is starting, as its /health says; waiting for it")
                told = True
                await asyncio.sleep(STARTING_S)

    async def _step_async(self, action: KernelAction, **arguments: Any) -> StepResult[KernelObservation]:
        """A step that comes back when the server is busy, for as long as an answer may take."""
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                found: StepResult[KernelObservation] = await super()._step_async(action, **arguments)
                return found
            except RuntimeError as error:
                wait_s = retry_after(str(error))
                if wait_s is None or time.monotonic() + wait_s > until:
                    raise
                await asyncio.sleep(wait_s)

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump(mode="json")

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        reward, done = payload.get("reward"), bool(payload.get("done", False))
        seen = KernelObservation.model_validate({**payload.get("observation", {}), "reward": reward, "done": done})
        return StepResult(observation=seen, reward=reward, done=done, metadata=payload.get("metadata"))

    def _parse_state(self, payload: dict[str, Any]) -> EpisodeState:
        return EpisodeState.model_validate(payload)


def _starts(error: ConnectionError) -> bool:
    """Whether the server refused a socket with 503, as it does until it can judge."""
    return isinstance(error.__cause__, InvalidStatus) and error.__cause__.response.status_code == 503


kernrl_env = KernelEnvClient
"""The name under which programs written for kernrl know their client."""
