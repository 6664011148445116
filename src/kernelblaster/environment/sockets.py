"""What OpenEnv does not do for the sockets of sessions: end those that are silent, and expect that clients leave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

_LOG = logging.getLogger(__name__)
IDLE_CODE = 4408
"""With which a socket is closed whose client was silent; 4000 and above are an application's own."""


class IdleSockets:
    """ASGI middleware that ends sessions whose client says nothing for too long, so that their slots come back.

    What counts is the time that the server waits for a client's next message: while a submission waits or is judged,
    nobody is idle. OpenEnv's own limit counts from the end of the step before, and ends sessions whose step is running.

    Args:
        app: what is served.
        after_s: seconds of silence.
    """

    def __init__(self, app: Application, after_s: float) -> None:
        self._app = app
        self._after_s = after_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def patient() -> Message:
            try:
                return await asyncio.wait_for(receive(), self._after_s)
            except TimeoutError:
                reason = f"silent for {self._after_s:g} s; connect again"
                await send({"type": "websocket.close", "code": IDLE_CODE, "reason": reason})
                return {"type": "websocket.disconnect", "code": IDLE_CODE}

        await self._app(scope, patient, send)


IN_REQUEST: ContextVar[bool] = ContextVar("IN_REQUEST", default=False)
"""Whether an environment is made for one request over HTTP; OpenEnv makes those of sockets on threads of their own."""


class MarkedRequests:
    """ASGI middleware that says what is one request over HTTP, see `IN_REQUEST`.

    Args:
        app: what is served.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        IN_REQUEST.set(scope["type"] == "http")
        await self._app(scope, receive, send)


class LeavingClients:
    """ASGI middleware: a client that leaves before its answer is no failure of the server, which would log a traceback.

    Args:
        app: what is served.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        left = False

        async def noted(message: Message) -> None:
            nonlocal left
            try:
                await send(message)
            except OSError:  # by ASGI's specification: the client is gone
                left = True
                raise

        try:
            await self._app(scope, receive, noted if scope["type"] == "websocket" else send)
        except Exception as error:
            if not left:
                raise
            _LOG.info("a client left before its answer: %s", type(error).__name__)
