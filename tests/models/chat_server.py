"""A chat completions endpoint on loopback that plays a script: one step per request, the last one for good."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 20},
}


def completion(text: str | None = "hello", *, finish: str = "stop", **changes: Any) -> dict[str, Any]:
    """The body of a chat completion; `changes` replace top-level fields, None removes one."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "served-model",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": USAGE,
    } | changes
    return {name: value for name, value in body.items() if value is not None}


@dataclass(frozen=True)
class Step:
    """One answer."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut_to: int | None = None
    """Bytes sent of those announced."""
    trickle_s: float = 0.0
    """Pause between single bytes."""
    delay_s: float = 0.0
    pieces: tuple[tuple[float, bytes], ...] = ()
    """Sent in place of the body, each after a pause in seconds, without a length; then the connection is closed."""
    when: Callable[[dict[str, Any]], bool] = lambda body: True
    """Applies to these requests; others get the next step."""


def chunk(text: str | None = None, **changes: Any) -> bytes:
    """A piece of a streamed completion: some text, or other fields of the choice or of the whole (`usage`)."""
    choice = {"index": 0, "delta": {} if text is None else {"content": text}}
    choice |= {name: changes.pop(name) for name in ("finish_reason", "delta") if name in changes}
    body = {"object": "chat.completion.chunk", "model": "served-model", "choices": [choice]} | changes
    return b"data: " + json.dumps(body).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def streamed(*texts: str, finish: str = "stop") -> Step:
    """A whole reply in pieces."""
    parts = [*(chunk(text) for text in texts), chunk(finish_reason=finish), chunk(choices=[], usage=USAGE), DONE]
    return Step(pieces=tuple((0.0, part) for part in parts))


NO_LISTING = Step(status=404, body={"error": {"message": "no such path"}})


@dataclass
class ChatServer:
    """What the server was asked."""

    script: list[Step]
    port: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    listings: int = 0
    """Times it was asked for its models."""
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Step:
        with self._lock:
            self.bodies.append(body)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            while not self.script[0].when(body):
                self.script.pop(0)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1


@contextmanager
def serve(*script: Step, listing: Step = NO_LISTING) -> Iterator[ChatServer]:
    """Serve on a free loopback port until the block ends; `listing` answers the question for its models."""
    chat = ChatServer(list(script))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            chat.listings += 1
            self._answer(listing)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            step = chat.take(body, dict(self.headers))
            try:
                chat.closing.wait(step.delay_s)
                self._answer(step)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                chat.done()

        def _stream(self, step: Step) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for pause, piece in step.pieces:
                if chat.closing.wait(pause):
                    return
                self.wfile.write(piece)
                self.wfile.flush()

        def _answer(self, step: Step) -> None:
            if step.pieces:
                return self._stream(step)
            data = step.body if isinstance(step.body, bytes) else json.dumps(step.body).encode()
            self.send_response(step.status)
            self.send_header("content-type", step.content_type)
            self.send_header("content-length", str(len(data)))
            for name, value in step.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if step.trickle_s:
                for byte in data:
                    if chat.closing.is_set():
                        return
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(step.trickle_s)
                return
            self.wfile.write(data[: step.cut_to])
            if step.cut_to is not None:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    chat.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        chat.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
