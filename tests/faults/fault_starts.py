"""Starting whole runs, with a fault at a chosen place, and answering what they ask."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import stand_ins

HERE = Path(__file__).parent
MOST_STARTS = 40
EXPERIMENT = Path("out", "kernelbench-cuda", "fp32", "timing_analysis")
RUN = EXPERIMENT / "stand-in"
KNOWN = "known.json"
"""Knowledge base of a scenario that recalls."""


class Disk(IntEnum):
    """What befalls the chosen call that changes a file of the run; the values are those of `disk_faults.c`."""

    SOUND = 0
    KILL = 1
    TEAR = 2
    FULL = 3


@dataclass(frozen=True)
class Scenario:
    """A run: how it is asked for, and how the model is reached (`openai_api` or `batch_exchange`)."""

    problems: int
    options: tuple[str, ...]
    model: str = "openai_api"
    ruled: bool = True

    rollouts: int = 1
    recalls: bool = False
    """Whether it starts from a knowledge base that holds a kernel of the first problem."""

    @property
    def chains(self) -> int:
        """Chains of steps under way at once; with more than one, their order is a matter of chance."""
        return self.problems * self.rollouts


@dataclass(frozen=True)
class Fault:
    """Where one start ends: at an event, counted from 1, or at a call that changes a file; 0 for never."""

    event: int = 0
    disk: Disk = Disk.SOUND
    at: int = 0
    lost_after: int | None = None
    """Builds until the GPU is lost."""
    after_s: float | None = None
    """Seconds until a SIGKILL from outside."""

    @property
    def name(self) -> str:
        """For a directory."""
        return f"event-{self.event}-{self.disk.name.lower()}-{self.at}-lost-{self.lost_after}-after-{self.after_s}"


class Zygote:
    """A process that starts the product quickly, several times at once; safe for threads."""

    def __init__(self, library: Path) -> None:
        paths = (HERE, HERE.parent / "evaluation", *map(Path, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG")}
        added = {"LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "zygote.py")],
            env=kept | added,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._lock = threading.Lock()
        self._ends: dict[str, queue.Queue[int]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait(30)

    def _listen(self) -> None:
        for line in self._process.stdout:
            name, code = line.split()
            self._ends.pop(name).put(int(code))

    def start(self, scenario: Scenario, directory: Path, url: str = "", fault: Fault | None = None) -> int:
        """Start the product in `directory` and wait for its end: an exit code, or the negative number of a signal."""
        name = uuid.uuid4().hex
        order = {"name": name, **order_of(scenario, directory, url, fault)}
        end = self._ends[name] = queue.Queue()
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
        return end.get(timeout=250)


def order_of(scenario: Scenario, directory: Path, url: str = "", fault: Fault | None = None) -> dict[str, Any]:
    """What `zygote.py` is told of one start."""
    fault = fault or Fault()
    return {
        "directory": str(directory),
        "arguments": _arguments(scenario, directory),
        "settings": {"OPENAI_API_KEY": "sk-key", "OPENAI_BASE_URL": url} if url else {},
        "ruled": scenario.ruled,
        "dies_at_event": fault.event,
        "disk_mode": int(fault.disk),
        "at": fault.at,
        "lost_after": fault.lost_after,
        "killed_after_s": fault.after_s,
    }


def _arguments(scenario: Scenario, directory: Path) -> list[str]:
    return [
        *("run", "--model", "stand-in", "--model-kind", scenario.model, "--precision", "fp32", "--subset", "level1"),
        *("--dataset-dir", str(directory / "dataset"), "--out", str(directory / "out")),
        *(f"--rollouts={scenario.rollouts}", "--repairs=2", *scenario.options),
        *(("--knowledge-base", str(directory / KNOWN)) if scenario.recalls else ()),
    ]


@dataclass
class Server:
    """A chat completions endpoint, and how many replies it has given, all of which must be paid for."""

    url: str = ""
    answers: int = 0


Answer = Callable[[Sequence[dict[str, str]]], str | bytes]
"""From messages to the text of a reply, or to the bytes of a body that is no reply."""


@contextmanager
def serve(answer: Answer = stand_ins.answer) -> Iterator[Server]:
    """Serve on a free loopback port until the block ends."""
    served = Server()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(json.dumps({"data": [{"id": "stand-in"}]}).encode())

        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
            said = answer(messages)
            with lock:
                served.answers += isinstance(said, str)
            data = said if isinstance(said, bytes) else json.dumps(completion(said)).encode()
            self._send(data)

        def _send(self, data: bytes) -> None:
            try:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def completion(text: str) -> dict[str, Any]:
    """The body of a chat completion."""
    return {
        "object": "chat.completion",
        "model": "stand-in",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50},
    }


def answer_exchange(folder: Path) -> int:
    """Answer what is outstanding in a batch exchange, as another machine would; returns how much that was."""
    requests = [json.loads(line) for path in sorted(folder.glob("requests-*.jsonl")) for line in path.open()]
    replies = folder / "replies.jsonl"
    known = {json.loads(line)["custom_id"] for line in replies.open()} if replies.exists() else set()
    wanted = {one["custom_id"]: one["body"] for one in requests if one["custom_id"] not in known}
    if not wanted:
        return 0
    with replies.open("a") as file:
        for name, body in wanted.items():
            response = {"status_code": 200, "body": completion(stand_ins.answer(body["messages"]))}
            file.write(json.dumps({"custom_id": name, "response": response, "error": None}) + "\n")
    return len(wanted)


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Of a file that a death may have torn at its end."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def events_below(directory: Path) -> set[tuple[str, str]]:
    """Kind and slot of every recorded event of a run."""
    journals = directory.glob(f"{RUN}/level1/*/events.jsonl")
    return {(event["kind"], event["slot"]) for path in journals for event in json_lines(path)}
