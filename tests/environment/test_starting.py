"""What a server says before it serves, of its slots, and of a judge that errs. Needs the extra `env`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import FakeJudge, evaluation, kernel
from soaking import Served, ask, connected, drop, serving

from kernelblaster.environment import client as clients
from kernelblaster.environment.canaries import WatchedJudge, canary_problem
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.starting import StartingServer
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Evaluation, Verdict


def get(url: str) -> tuple[int, Any]:
    """Status and body of an answer, whatever it is."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused as answer:
            return answer.code, json.load(answer)


def test_a_server_that_starts_says_at_what_and_leaves_its_socket_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/health"
        with StartingServer(listening) as starting:
            for stage in ("building", "judging"):
                starting.tell(stage)
                status, told = get(url)
                assert (status, told["status"], told["ready"], told["stage"]) == (503, "starting", False, stage)
            silent = socket.create_connection(listening.getsockname())  # holds nobody up
            assert get(url)[0] == 503
        silent.close()
        later = threading.Thread(target=lambda: get(url), daemon=True)
        later.start()
        listening.settimeout(10)
        connection, _ = listening.accept()
        assert connection.recv(64).startswith(b"GET /health")
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()
        later.join(10)


SLOW = """
import sys, time
from contextlib import contextmanager

sys.path.insert(0, {tests!r})
from serving_process import made
from kernelblaster import serve_environment


@contextmanager
def opening(*, on_stage):
    on_stage("taking its time")
    while not sys.stdin.readline():
        pass
    yield made()


serve_environment(opening, port=0, on_bound=lambda port: print(port, flush=True))
"""


@contextmanager
def slow_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that opens when a line comes."""
    program = SLOW.format(tests=str(Path(__file__).parent))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = subprocess.Popen([sys.executable, "-c", program], **pipes)
    try:
        yield started, f"http://127.0.0.1:{int(started.stdout.readline())}/health"
    finally:
        started.kill()
        started.wait()


def test_it_is_not_ready_before_it_can_judge_and_ready_then() -> None:
    with slow_server() as (started, url):
        _until(url, 503, stage="taking its time")
        started.stdin.write("open\n")
        started.stdin.flush()
        _until(url, 200, ready=True)
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 0


def test_a_client_waits_for_a_server_that_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clients, "STARTING_S", 0.05)
    with slow_server() as (started, url):
        _until(url, 503)
        opening = threading.Timer(0.3, lambda: print("open", file=started.stdin, flush=True))
        opening.start()
        with clients.kernrl_env(url.removesuffix("/health")).sync() as env:
            assert env.reset(problem_id="L1_23").observation.problem_id == "L1_23_Softmax"
        assert caplog.text.count("the server is starting") == 1


def test_a_client_does_not_wait_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ConnectionError), clients.kernrl_env(url).sync():
        pytest.fail("it connected")


def test_an_interrupt_ends_it_while_it_starts() -> None:
    with slow_server() as (started, url):
        _until(url, 503)
        started.send_signal(signal.SIGINT)
        assert started.wait(60) != 0
        with pytest.raises(urllib.error.URLError):
            get(url)


def _until(url: str, status: int, **expected: object) -> None:
    deadline = time.monotonic() + 60
    found: object = None
    while time.monotonic() < deadline:
        try:
            found, told = get(url)
            if found == status and expected.items() <= told.items():
                return
        except OSError as error:
            found = error
        time.sleep(0.05)
    pytest.fail(f"never {status} {expected}, but {found}")


@pytest.fixture
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue) as found:
        yield found


def _sessions(served: Served, **expected: object) -> dict[str, Any]:
    """The census, once it is as expected."""
    deadline = time.monotonic() + 20
    while True:
        found = get(f"{served.url}/load")[1]["sessions"]
        if expected.items() <= found.items():
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def test_slots_are_counted_and_requests_over_http_hold_none(served: Served) -> None:
    assert _sessions(served) == {"capacity": 4, "open": 0, "stepping": 0, "longest_idle_s": None, "opened": 0}
    clients = [connected(served) for _ in range(3)]
    for client in clients:
        ask(client, "reset", problem_id="L1_23")
    for path in ("metadata", "state", "schema"):
        get(f"{served.url}/{path}")
    assert _sessions(served)["open"] == 3
    served.judge.gate.clear()
    clients[0].send(json.dumps({"type": "step", "data": {"code": kernel(Verdict.WRONG_VALUES)}}))
    _sessions(served, open=3, stepping=1)
    drop(clients[0])
    clients[1].close()
    found = _sessions(served, open=2)
    assert (found["stepping"], found["opened"]) == (1, 3), "a slot is held until its step has ended"
    served.judge.gate.set()
    _sessions(served, open=1, stepping=0)
    clients[2].close()
    _sessions(served, open=0)


def test_a_judge_that_errs_makes_the_server_unhealthy_until_it_is_right_again(catalogue: Catalogue) -> None:
    class Erring(FakeJudge):
        errs = False

        def _judged(self, source: str) -> Evaluation:
            if self.errs or "<<<" in source:
                return evaluation(Verdict.CORRECT)
            return evaluation(Verdict.WRONG_VALUES if "launch" in source else Verdict.COMPILE_ERROR)

    judge = Erring()
    problem = canary_problem(catalogue.problems)
    watched = WatchedJudge(judge, problem, every_s=0.0)
    with serving(catalogue, judge=watched) as served:
        url = f"{served.url}/health"
        assert get(url) == (200, {"status": "healthy", "ready": True})
        for judge.errs, status in ((True, 503), (False, 200)):
            try:
                watched.check()
            except DeviceError:
                assert judge.errs
            found, told = get(url)
            assert (found, told["ready"], bool(told.get("reason"))) == (status, status == 200, status == 503)
