"""Real clients over a real socket, with a judge that is not real."""

from __future__ import annotations

import json
import runpy
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from openenv.core.generic_client import GenericEnvClient
from soaking import CAPACITY, Served, all_slots_come_back, ask, connected, drop, serving, soak

from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.client import kernrl_env
from kernelblaster.evaluation.results import Decision, Verdict

REPOSITORY = Path(__file__).parents[2]
FASTER = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue) as found:
        yield found


def post(url: str, data: dict[str, object]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def refusal(url: str, data: dict[str, object] | None = None) -> tuple[int, str]:
    """Status and words of an answer that is none of success."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(url) if data is None else post(url, data)
    with refused.value as answer:
        return answer.code, json.load(answer)["detail"]


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
        assert all_slots_come_back(served)


def test_a_socket_that_drops_during_a_step_leaves_its_slot_when_the_step_has_ended(served) -> None:
    served.judge.gate.clear()
    for number in range(CAPACITY):
        client = connected(served)
        ask(client, "reset", problem_id="L1_23")
        client.send(json.dumps({"type": "step", "data": {"code": kernel(Verdict.TIMEOUT, note=f"// {number}\n")}}))
        drop(client)
    served.judge.gate.set()
    assert all_slots_come_back(served)


@pytest.mark.slow
def test_hundreds_of_episodes_with_crashes_and_drops_leave_no_slot_thread_or_file(served) -> None:
    before, after = soak(served, 700)
    assert after.threads <= before.threads + CAPACITY
    assert after.files <= before.files + 3 * CAPACITY
    assert after.processes == before.processes


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


def test_health_schema_and_task_lists_are_served(served) -> None:
    assert get(f"{served.url}/health")["status"] == "healthy"
    schema = get(f"{served.url}/schema")
    assert set(schema["action"]["properties"]) >= {"code", "language", "profile", "metadata"}
    assert set(schema["observation"]["properties"]) >= {"feedback", "speedup", "reward", "done"}
    assert "best_speedup" in schema["state"]["properties"]
    for part, field in (("action", "sanitize"), ("observation", "floor_us"), ("state", "solved")):
        assert schema[part]["properties"][field]["description"], "what a field means is told where it is declared"
    assert get(f"{served.url}/metadata")["name"] == "kernelblaster"


def test_the_page_plays_an_episode_of_its_own_and_holds_no_slot(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_WEB_INTERFACE", "true")
    with serving(catalogue) as found:
        with urllib.request.urlopen(f"{found.url}/web/", timeout=60) as page:
            assert page.headers["Content-Type"].startswith("text/html")
        post(f"{found.url}/web/reset", {"problem_id": "L1_23"})
        assert post(f"{found.url}/web/step", {"action": {"code": FASTER}})["reward"] == pytest.approx(1.0)
        assert get(f"{found.url}/web/state")["problem_id"] == "L1_23_Softmax"
        assert get(f"{found.url}/load")["sessions"]["open"] == 0


def test_task_lists_have_types_and_places_that_exist(served, catalogue: Catalogue) -> None:
    tasks = f"{served.url}/kernelblaster"
    splits = {one["name"]: one for one in get(f"{tasks}/splits")}
    types = {name: splits[name]["type"] for name in ("train", "heldout", "level1", "all")}
    assert types == {"train": "train", "heldout": "test", "level1": "validation", "all": "validation"}
    for name in ("train", "all"):
        number = post(f"{tasks}/num_tasks", {"split": name})["num_tasks"]
        every = post(f"{tasks}/tasks", {"split": name})["tasks"]
        assert number == splits[name]["num_tasks"] == len(every) == len(catalogue.tasks(name))
        assert [one["index"] for one in every] == list(range(number))
    some = post(f"{tasks}/task_range", {"split": "all", "start": 2, "stop": 5})["tasks"]
    assert some == [post(f"{tasks}/task", {"split": "all", "index": index})["task"] for index in (2, 3, 4)]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("task", {"split": "train", "index": -1}),
        ("task", {"split": "train", "index": 10**6}),
        ("task", {"split": "test", "index": 0}),
        ("tasks", {"split": "test"}),
        ("num_tasks", {"split": ""}),
        ("task_range", {"split": "train", "start": -2}),
        ("task_range", {"split": "train", "stop": -1}),
    ],
)
def test_a_task_that_does_not_exist_is_refused_with_its_cure(served, path: str, asked: dict[str, object]) -> None:
    status, told = refusal(f"{served.url}/kernelblaster/{path}", asked)
    assert status == 400
    assert ";" in told, "a hint follows"


def test_http_remembers_no_episode_and_says_what_helps(served) -> None:
    post(f"{served.url}/reset", {"problem_id": "L1_23"})
    status, told = refusal(f"{served.url}/step", {"action": {"code": FASTER}})
    assert status == 400
    assert "problem_id" in told
    status, told = refusal(f"{served.url}/state")
    assert status == 400
    assert "/ws" in told
    assert "/state" in get(f"{served.url}/openapi.json")["paths"]
