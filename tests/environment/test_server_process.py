"""A server as a process: where it listens, how it ends, and what it knows when it is started again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import FakeJudge, kernel

from kernelblaster import serve_environment
from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.client import kernrl_env
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict

STARTS_S = 120.0


@contextmanager
def process(port: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that answers, and its port; killed at the end if it still runs."""
    script = Path(__file__).with_name("serving_process.py")
    started = subprocess.Popen([sys.executable, str(script), str(port)], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        bound = int(started.stdout.readline())
        until = time.monotonic() + STARTS_S
        while time.monotonic() < until:
            try:
                get(bound, "health")
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield started, bound
    finally:
        started.kill()
        started.wait()


def get(port: int, path: str) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20) as answer:
        return json.load(answer)


def test_killed_and_started_again_it_has_the_same_tasks_and_serves_them() -> None:
    lists, drawn = [], []
    port = 0
    for end in (signal.SIGKILL, signal.SIGINT):
        with process(port) as (server, port):
            lists.append(get(port, "kernelblaster/splits"))
            with kernrl_env(f"http://127.0.0.1:{port}").sync() as env:
                drawn.append([env.reset(split="train", seed=seed).observation.problem_id for seed in range(4)])
                code = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)
                assert env.step(KernelAction(code=code)).reward == pytest.approx(1.0)
            server.send_signal(end)
            ended = server.wait(60)
    assert lists[0] == lists[1] != []
    assert drawn[0] == drawn[1]
    assert ended == 0  # an interrupt is how a server ends


def test_an_address_that_is_taken_is_told_before_anything_is_served(catalogue: Catalogue) -> None:
    environments = KernelEnvironments(catalogue, SharedJudge(FakeJudge()), EnvironmentSettings())
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="nothing can be served"):
        serve_environment(environments, port=taken.getsockname()[1], on_bound=lambda port: pytest.fail("it was bound"))
    with pytest.raises(UsageError):
        serve_environment(environments, host="no.such.host.invalid", port=0)
