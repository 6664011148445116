"""A trained model behind OpenAI's chat completions, for searches on this machine. Needs the extra `train`.

Requests that wait are answered together, in one batch of `generate`. A reply is written whole before any of it is sent,
as one event where a client asks for a stream. Whoever reaches the address may ask: it is one of this machine.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal

import torch
from jinja2 import TemplateError
from pydantic import BaseModel, Field, ValidationError

from kernelblaster.devices.cuda.lock import gpu_shared
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.models.base import Message
from kernelblaster.training.policy import Policy, ids_of_messages
from kernelblaster.training.sampling import Sampling, ends_of, write_completions

LOCAL = "127.0.0.1"
LARGEST_REQUEST = 8 << 20
"""Bytes of a request."""
LONGEST_WAIT_S = 3600.0
"""Of a request for its reply; clients give up sooner."""


class ChatRequest(BaseModel):
    """What is read of a request; other fields are left to servers that know them."""

    model: str
    messages: tuple[Message, ...] = Field(min_length=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    temperature: float = Field(1.0, ge=0, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0, le=1)
    n: Literal[1] = 1
    stream: bool = False


@dataclass(frozen=True)
class ServedReply:
    """A reply.

    Attributes:
        text: of it.
        prompt_tokens, tokens: of the prompt and of the reply.
        ended: the model ended it; else it ran out of tokens.
    """

    text: str
    prompt_tokens: int
    tokens: int
    ended: bool


class BadRequest(UsageError):
    """A request that cannot be answered, whose message the client is told.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class ServedModel:
    """Answers requests, those that wait together.

    Args:
        policy: that writes.
        name: by which it is asked for.
        completion_tokens: of a reply at most, where a request does not say.
        batch: replies written at once.
    """

    def __init__(self, policy: Policy, name: str, completion_tokens: int, batch: int) -> None:
        self.name = name
        self._policy = policy
        self._tokens = completion_tokens
        self._batch = batch
        self._waiting: queue.Queue[tuple[list[int], int, Sampling, Future[ServedReply]]] = queue.Queue()
        policy.model.eval()
        threading.Thread(target=self._work, name="generate", daemon=True).start()

    def answer(self, asked: ChatRequest) -> ServedReply:
        """The reply, once its turn has come. Raises BadRequest, MachineError."""
        if asked.model != self.name:
            raise BadRequest(f"there is no model {asked.model!r} here, only {self.name!r}", status=404)
        try:
            ids = ids_of_messages(self._policy.tokenizer, asked.messages)
        except TemplateError as error:
            raise BadRequest(f"the model's chat template refuses these messages: {error}") from error
        room = int(self._policy.model.config.max_position_embeddings) - len(ids)
        if room < 1:
            raise BadRequest(f"the prompt has {len(ids)} tokens: with a reply it is longer than the model reads")
        wanted = asked.max_completion_tokens or asked.max_tokens or self._tokens
        reply: Future[ServedReply] = Future()
        self._waiting.put((ids, min(room, wanted), Sampling(asked.temperature, asked.top_p), reply))
        return reply.result(LONGEST_WAIT_S)

    def _work(self) -> None:
        """Writes for those who wait, the longest first, together with others that sample alike."""
        late: list[tuple[list[int], int, Sampling, Future[ServedReply]]] = []
        while True:
            late = late or [self._waiting.get()]
            while not self._waiting.empty():
                late.append(self._waiting.get())
            alike = [one for one in late if one[2] == late[0][2]][: self._batch]
            late = [one for one in late if one not in alike]
            try:
                written = self._write([one[0] for one in alike], [one[1] for one in alike], alike[0][2])
            except RuntimeError as error:  # no room, or the GPU failed
                lost = MachineError(f"{len(alike)} replies could not be written: {error}", hint="try a smaller --batch")
                for *_, reply in alike:
                    reply.set_exception(lost)
                continue
            for (*_, reply), one in zip(alike, written, strict=True):
                reply.set_result(one)

    def _write(self, prompts: list[list[int]], limits: list[int], how: Sampling) -> list[ServedReply]:
        with _gpu():
            completions = write_completions(self._policy, prompts, max(limits), how)
        ends, found = ends_of(self._policy), []
        for prompt, limit, every in zip(prompts, limits, completions, strict=True):
            ids = every[:limit]
            text = self._policy.tokenizer.decode(ids, skip_special_tokens=True)
            found.append(ServedReply(text, len(prompt), len(ids), ended=bool(ids) and ids[-1] in ends))
        return found


def serve(model: ServedModel, port: int, on_ready: Callable[[str], object]) -> None:
    """Answer at a loopback address until interrupted.

    Args:
        model: that answers.
        port: 0 for any that is free.
        on_ready: told the base URL once it answers.

    Raises UsageError where the port is taken.
    """
    handler = type("ChatHandler", (_Handler,), {"model": model})
    try:
        server = ThreadingHTTPServer((LOCAL, port), handler)
    except OSError as error:
        raise UsageError(f"port {port} cannot be had: {error.strerror}", hint="give another --port, or 0") from error
    with server:
        on_ready(f"http://{LOCAL}:{server.server_port}/v1")
        server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    """The two routes that clients use."""

    protocol_version = "HTTP/1.1"
    model: ClassVar[ServedModel]

    def do_GET(self) -> None:
        if self.path.rstrip("/") != "/v1/models":
            self._refuse(BadRequest(f"there is no {self.path}", status=404))
            return
        self._send(
            {"object": "list", "data": [{"id": self.model.name, "object": "model", "owned_by": "kernelblaster"}]}
        )

    def do_POST(self) -> None:
        try:
            asked = self._read()
            written = self.model.answer(asked)
        except BadRequest as error:
            self._refuse(error)
        except MachineError as error:
            self._refuse(BadRequest(error.message, status=503))
        else:
            reply = _completion(self.model.name, written)
            if asked.stream:
                self._send_events(reply, written)
            else:
                self._send(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: searches tell of their calls."""

    def _read(self) -> ChatRequest:
        """Raises BadRequest."""
        self.close_connection = True  # what a refused request still holds is not read as the next one
        if self.path.rstrip("/") != "/v1/chat/completions":
            raise BadRequest(f"there is no {self.path}", status=404)
        # A page in a browser can send another type unasked.
        if self.headers.get_content_type() != "application/json":
            raise BadRequest("the request is not application/json", status=415)
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LARGEST_REQUEST:
            raise BadRequest(f"a request has a length, of {LARGEST_REQUEST} bytes at most", status=413)
        body = self.rfile.read(int(length))
        self.close_connection = False
        try:
            return ChatRequest.model_validate_json(body)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise BadRequest(f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error

    def _refuse(self, error: BadRequest) -> None:
        told = {"message": error.message, "type": "invalid_request_error" if error.status < 500 else "server_error"}
        self._send({"error": told}, error.status)

    def _send(self, body: dict[str, Any], status: int = 200) -> None:
        self._send_bytes(json.dumps(body).encode(), "application/json", status)

    def _send_events(self, reply: dict[str, Any], written: ServedReply) -> None:
        (choice,) = reply["choices"]
        piece = {"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]}
        chunk = {**reply, "object": "chat.completion.chunk", "choices": [piece]}
        self._send_bytes(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream", 200)

    def _send_bytes(self, content: bytes, kind: str, status: int) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has given up


def _completion(name: str, written: ServedReply) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{time.monotonic_ns():x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": name,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": written.text},
                "finish_reason": "stop" if written.ended else "length",
            }
        ],
        "usage": {
            "prompt_tokens": written.prompt_tokens,
            "completion_tokens": written.tokens,
            "total_tokens": written.prompt_tokens + written.tokens,
        },
    }


@contextmanager
def _gpu() -> Iterator[None]:
    """Not while a judge of this machine times a kernel on the same GPU."""
    lock: AbstractContextManager[None] = nullcontext()
    if torch.cuda.is_available():
        lock = gpu_shared(f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}")
    with lock:
        yield
