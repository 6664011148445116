"""Ends sessions whose client says nothing for too long, so that their slots come back.

What counts is the time that the server waits for a client's next message: while a submission waits or is judged, nobody
is idle. OpenEnv's own limit counts from the end of the step before, and ends sessions whose step is running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

IDLE_CODE = 4408
"""With which a socket is closed whose client was silent; 4000 and above are an application's own."""


class IdleSockets:
    """ASGI middleware.

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
