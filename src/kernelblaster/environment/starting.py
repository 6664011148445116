"""What a server answers before it can serve: that it is starting, and at what."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

RETRY_AFTER_S = 5
_CONNECTION_S = 10.0
_POLL_S = 0.1


class StartingServer:
    """Answers every request on a listening socket with 503, until the end of the block; the socket stays open.

    Args:
        listening: whom the server itself will listen on afterwards.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._began = time.monotonic()
        self._stage = "starting"
        starting = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _CONNECTION_S
            protocol_version = "HTTP/1.1"  # clients of websockets read no other

            def _answer(self) -> None:
                body = json.dumps(starting.told).encode()
                self.send_response(503)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Retry-After", str(RETRY_AFTER_S))
                self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = _answer

            def log_message(self, format: str, *arguments: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("", 0), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listening.dup()
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="starting", daemon=True
        )

    @property
    def told(self) -> dict[str, object]:
        """The body of each answer."""
        seconds = round(time.monotonic() - self._began, 1)
        return {"status": "starting", "ready": False, "stage": self._stage, "seconds": seconds}

    def tell(self, stage: str) -> None:
        """From now on this is done."""
        self._stage = stage

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
