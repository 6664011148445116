"""A model behind OpenAI's protocol that says what it was told to, whole or as a stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted"
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass
class Scripted:
    """What it says, in the order of a conversation's turns, and what it was asked."""

    url: str
    replies: Sequence[str]
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def scripted_endpoint(replies: Sequence[str]) -> Iterator[Scripted]:
    """An endpoint on a free port, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said.asked.append(body)
            turn = sum(message["role"] == "assistant" for message in body["messages"])
            message = {"role": "assistant", "content": replies[min(turn, len(replies) - 1)]}
            common = {"id": "1", "created": 1, "model": MODEL}
            self.send_response(200)
            if body.get("stream"):
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for delta, end in ((message, None), ({}, "stop")):
                    choice = {"index": 0, "delta": delta, "finish_reason": end}
                    chunk = {**common, "object": "chat.completion.chunk", "choices": [choice], "usage": _USAGE}
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")
                return
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {**common, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
            data = json.dumps(answer).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said = Scripted(f"http://127.0.0.1:{server.server_address[1]}/v1", replies)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield said
    server.shutdown()
    server.server_close()
