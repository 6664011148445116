"""A server of the environment with a judge that is not real, and episodes that end in every way, many at once.

What the server holds is counted: slots, threads, open files and child processes. Needs the extra `env`.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fake_judge import FakeJudge, kernel
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.fair_queue import FairQueue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.server import create_app
from kernelblaster.evaluation.results import Verdict

CAPACITY = 4
WARM_UP = 100
"""Episodes before the first count: pools of threads fill."""
OUTCOMES = (
    Verdict.CORRECT, Verdict.RUNTIME_ERROR, Verdict.TIMEOUT, Verdict.REWARD_HACK, Verdict.COMPILE_ERROR,
)  # fmt: skip


@dataclass(frozen=True)
class Served:
    """A running server: where it listens, and its judge."""

    url: str
    judge: FakeJudge


@dataclass(frozen=True)
class Census:
    """What the process holds while no session is open."""

    threads: int
    files: int
    processes: int


@contextmanager
def serving(
    catalogue: Catalogue,
    *,
    queue: FairQueue | None = None,
    capacity: int = CAPACITY,
    idle_s: float = math.inf,
    judging: bool = False,
    judge: Any = None,
) -> Iterator[Served]:
    """A server in this process, until the end of the block."""
    judge = judge or FakeJudge()
    environments = KernelEnvironments(catalogue, SharedJudge(judge, queue), EnvironmentSettings())
    with serving_environments(environments, capacity=capacity, idle_s=idle_s, judging=judging) as url:
        yield Served(url, judge)


@contextmanager
def serving_environments(environments: KernelEnvironments, **options: Any) -> Iterator[str]:
    """The address of a server of these in this process, until the end of the block; options as of `create_app`."""
    app = create_app(environments, **{"capacity": CAPACITY, **options})
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(20)


def soak(served: Served, episodes: int) -> tuple[Census, Census]:
    """Play episodes, as many at once as there are slots; what the server holds before and after."""
    with ThreadPoolExecutor(CAPACITY) as pool:
        list(pool.map(lambda number: _play(served, number), range(WARM_UP)))
        before = _census(served)
        list(pool.map(lambda number: _play(served, number), range(WARM_UP, episodes)))
        return before, _census(served)


def _play(served: Served, number: int) -> None:
    """One episode; every third ends like a client that was killed."""
    for _ in range(100):
        try:
            client = connected(served)
            ask(client, "reset", problem_id=f"L1_{19 + number % 30}")
            break
        except (ConnectionClosed, KeyError):
            time.sleep(0.05)
    code = kernel(OUTCOMES[number % len(OUTCOMES)], note=f"// {number}\n")
    client.send(json.dumps({"type": "step", "data": {"code": code}}))
    if number % 3:
        assert json.loads(client.recv(20))["type"] == "observation"
        client.close()
    else:
        drop(client)


def _census(served: Served) -> Census:
    assert all_slots_come_back(served)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return Census(threading.active_count(), len(os.listdir("/proc/self/fd")), len(children))


def connected(served: Served) -> ClientConnection:
    """A client that speaks to the server."""
    return connect(f"{served.url.replace('http', 'ws')}/ws", open_timeout=20, legacy=True)


def drop(client: ClientConnection) -> None:
    """End the connection as a killed process does: without a closing handshake."""
    client.socket.shutdown(socket.SHUT_RDWR)


def ask(client: ClientConnection, kind: str, **data: object) -> dict[str, object]:
    """The answer's data. Raises KeyError where the server answers with an error."""
    client.send(json.dumps({"type": kind, "data": data}))
    answer = json.loads(client.recv(20))
    return {"observation": answer["data"]}[answer["type"]]


def all_slots_come_back(served: Served, within_s: float = 20.0) -> bool:
    """Whether as many sessions as there are slots can be had at once, soon."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        sockets: list[ClientConnection] = []
        try:
            for _ in range(CAPACITY):
                sockets.append(connected(served))
                ask(sockets[-1], "reset", problem_id="L1_23")
            return True
        except (ConnectionClosed, KeyError):
            time.sleep(0.05)
        finally:
            for client in sockets:
                client.close()
    return False
