"""Real clients over a real socket, with a judge that is not real."""

from __future__ import annotations

import json
import runpy
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

import uvicorn
from fake_judge import FakeJudge, kernel
from openenv.core.generic_client import GenericEnvClient

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.client import kernrl_env
from kernelblaster.environment.episode import EnvironmentSettings, KernelAction, KernelEnvironments
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.server import create_app
from kernelblaster.evaluation.results import Decision, Verdict

CAPACITY = 4
REPOSITORY = Path(__file__).parents[2]
FASTER = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[SimpleNamespace]:
    judge = FakeJudge()
    app = create_app(KernelEnvironments(catalogue, SharedJudge(judge), EnvironmentSettings()), CAPACITY)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield SimpleNamespace(url=f"http://127.0.0.1:{port}", judge=judge)
    server.should_exit = True
    thread.join(20)


def post(url: str, data: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def get(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def test_an_episode_by_the_typed_client(served) -> None:
    with kernrl_env(served.url).sync() as env:
        first = env.reset(problem_id="L1_23_Softmax", max_turns=2, episode_id="one")
        assert (first.reward, first.done, first.observation.problem_id) == (0.0, False, "L1_23_Softmax")
        wrong = env.step(KernelAction(code=kernel(Verdict.WRONG_VALUES)))
        faster = env.step(KernelAction(code=FASTER))
        assert [wrong.reward, faster.reward] == pytest.approx([0.1, 1.0])
        assert (wrong.done, faster.done) == (False, True)
        assert faster.observation.speedup == 2.0
        state = env.state()
        assert (state.episode_id, state.step_count, state.done) == ("one", 2, True)
        with pytest.raises(RuntimeError, match="reset"):
            env.step(KernelAction(code=FASTER))
        assert env.reset(problem_id="L1_24").observation.problem_id == "L1_24_LogSoftmax"


def test_the_generic_client_speaks_to_the_same_server_and_hears_the_cure(served) -> None:
    with GenericEnvClient(served.url).sync() as env:
        with pytest.raises(RuntimeError, match="match exactly"):
            env.reset(problem_id="L1_999")
        env.reset(split="level1", index=22)
        found = env.step({"code": FASTER})
        assert found.reward == pytest.approx(1.0)
        assert found.observation["problem_id"] == "L1_23_Softmax"
        with pytest.raises(RuntimeError):
            env.step({"code": FASTER, "nonsense": 1})


def test_sessions_do_not_disturb_each_other_and_leave_their_slots(served) -> None:
    """More episodes than there are slots, as many at once as there are; each gets what it would get alone."""

    def episode(number: int) -> tuple[float, int]:
        decision = [Decision.SLOWER, Decision.FASTER][number % 2]
        with kernrl_env(served.url).sync() as env:
            env.reset(problem_id=f"L1_{19 + number}", max_turns=3)
            rewards = [env.step(KernelAction(code=kernel(Verdict.CORRECT, 1.5, decision))).reward for _ in range(2)]
            return sum(rewards), env.state().step_count

    for _ in range(2):
        with ThreadPoolExecutor(CAPACITY) as pool:
            found = list(pool.map(episode, range(CAPACITY)))
        assert found == [(pytest.approx([0.8, 1.751][number % 2], abs=2e-3), 2) for number in range(CAPACITY)]
        deadline = time.monotonic() + 10
        while _sessions(served) and time.monotonic() < deadline:
            time.sleep(0.05)


def _sessions(served) -> bool:
    """Whether a slot is missing: one more session than there are slots cannot be had."""
    clients = [kernrl_env(served.url).sync() for _ in range(CAPACITY)]
    try:
        for client in clients:
            client.connect()
            client.reset(problem_id="L1_23")
    except (RuntimeError, ConnectionError):
        return True
    finally:
        for client in clients:
            client.close()
    return False


def test_http_scores_one_submission(served) -> None:
    found = post(f"{served.url}/step", {"action": {"code": FASTER, "problem_id": "level1/23"}})
    assert found["reward"] == pytest.approx(1.0)
    assert found["done"] is True


def test_the_example_plays_an_episode_and_ends_with_its_replies(served, tmp_path) -> None:
    example = runpy.run_path(str(REPOSITORY / "examples" / "environment_loop.py"))
    files = [tmp_path / name for name in ("wrong.cu", "faster.cu")]
    for file, source in zip(files, (kernel(Verdict.WRONG_VALUES), FASTER), strict=True):
        file.write_text(source)
    assert example["play"](served.url, "L1_23", example["from_files"](files)) == pytest.approx(1.0)


def test_the_package_passes_what_openenv_checks_without_running_it() -> None:
    from openenv.validation import Level, run_validation
    from openenv.validation.types import Verdict as Outcome

    report = run_validation(REPOSITORY / "environments" / "kernelblaster", max_level=Level.STATIC)
    assert report.verdict is Outcome.PASS


def test_health_schema_and_task_lists_are_served(served) -> None:
    assert get(f"{served.url}/health")["status"] == "healthy"
    schema = get(f"{served.url}/schema")
    assert set(schema["action"]["properties"]) >= {"code", "language", "profile", "metadata"}
    assert set(schema["observation"]["properties"]) >= {"feedback", "speedup", "reward", "done"}
    assert "best_speedup" in schema["state"]["properties"]
    number = post(f"{served.url}/kernelblaster/num_tasks", {"split": "level1"})
    tasks = post(f"{served.url}/kernelblaster/tasks", {"split": "level1"})
    assert str(len(tasks["tasks"])) in json.dumps(number)
    assert get(f"{served.url}/metadata")["name"] == "kernelblaster"
