"""A server under more load than it judges at once, and with clients that fall silent. Needs the extra `env`."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from soaking import Served, ask, connected, serving
from websockets.exceptions import ConnectionClosed

from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.client import kernrl_env
from kernelblaster.environment.fair_queue import FairQueue
from kernelblaster.environment.sockets import IDLE_CODE
from kernelblaster.evaluation.results import Decision, Verdict

SESSIONS = 16


def _code(number: int) -> str:
    return kernel(Verdict.CORRECT, 2.0, Decision.FASTER, note=f"// {number}\n")


def _load(served: Served) -> dict[str, float]:
    with urllib.request.urlopen(f"{served.url}/load", timeout=20) as answer:
        return json.load(answer)


def _wait_for(served: Served, **expected: int) -> None:
    deadline = time.monotonic() + 20
    while not expected.items() <= _load(served).items():
        assert time.monotonic() < deadline, _load(served)
        time.sleep(0.01)


def test_a_full_queue_answers_busy_takes_no_turn_and_clients_come_back(catalogue: Catalogue) -> None:
    queue = FairQueue(workers=1, room=1)
    with serving(catalogue, queue=queue) as served, ThreadPoolExecutor(3) as threads:
        served.judge.gate.clear()

        def episode(number: int) -> float:
            with kernrl_env(served.url).sync() as env:
                env.reset(problem_id="L1_23")
                reward = env.step(KernelAction(code=_code(number))).reward
                assert env.state().step_count == 1
                return reward

        judged = threads.submit(episode, 0)
        _wait_for(served, running=1)
        waits = threads.submit(episode, 1)
        _wait_for(served, waiting=1)

        client = connected(served)
        ask(client, "reset", problem_id="L1_23")
        client.send(json.dumps({"type": "step", "data": {"code": _code(2)}}))
        refused = json.loads(client.recv(20))["data"]["message"]
        assert "busy" in refused
        assert "retry after 10 s" in refused
        client.send(json.dumps({"type": "state"}))
        assert json.loads(client.recv(20))["data"]["step_count"] == 0
        client.close()

        body = json.dumps({"action": {"code": _code(3), "problem_id": "L1_23"}}).encode()
        post = urllib.request.Request(f"{served.url}/step", body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(post, timeout=20)
        assert (error.value.code, error.value.headers["Retry-After"]) == (503, "10")

        queue._mean_s = 0.1  # so that the client waits for a second and not for ten
        comes_back = threads.submit(episode, 4)
        time.sleep(0.5)
        served.judge.gate.set()
        assert [found.result(30) for found in (judged, waits, comes_back)] == pytest.approx([1.0, 1.0, 1.0])
        _wait_for(served, running=0, waiting=0)


def test_each_of_many_sessions_gets_its_turns(catalogue: Catalogue) -> None:
    queue = FairQueue(workers=2, room=SESSIONS)
    with serving(catalogue, queue=queue, capacity=SESSIONS) as served, ThreadPoolExecutor(SESSIONS) as threads:

        def episode(number: int) -> list[float]:
            with kernrl_env(served.url).sync() as env:
                env.reset(problem_id=f"L1_{19 + number}", max_turns=5)
                return [env.step(KernelAction(code=_code(1000 * number + turn))).reward for turn in range(3)]

        found = list(threads.map(episode, range(SESSIONS)))
        assert found == [pytest.approx([1.0, 1.0, 1.0])] * SESSIONS
        _wait_for(served, running=0, waiting=0)


def test_a_silent_client_loses_its_slot_and_one_that_waits_for_its_step_does_not(catalogue: Catalogue) -> None:
    with serving(catalogue, capacity=1, idle_s=1.0) as served:
        silent = connected(served)
        ask(silent, "reset", problem_id="L1_23")
        served.judge.gate.clear()
        silent.send(json.dumps({"type": "step", "data": {"code": _code(0)}}))
        time.sleep(2.0)
        served.judge.gate.set()
        assert json.loads(silent.recv(20))["data"]["reward"] == pytest.approx(1.0)
        with pytest.raises(ConnectionClosed) as closed:
            silent.recv(20)
        assert closed.value.rcvd.code == IDLE_CODE
        _eventually_served(served)


def _eventually_served(served: Served) -> None:
    deadline = time.monotonic() + 20
    while True:
        client = connected(served)
        try:
            ask(client, "reset", problem_id="L1_23")
            return
        except (ConnectionClosed, KeyError):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        finally:
            client.close()
