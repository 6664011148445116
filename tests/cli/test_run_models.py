"""`run` and `answer` with models that answer, refuse, or are not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Step, completion, serve
from cli_support import FASTER, Done, reply

from kernelblaster.errors import ExitCode

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]

Invoke = Callable[..., Done]
SEARCH = ("run", "--rollouts", "1", "--steps", "1", "--device", "emulated", "--experiment", "models")
RIGHT = Step(body=completion(reply(FASTER)))


@pytest.fixture
def search(invoke: Invoke, dataset: Path) -> Invoke:
    return lambda *arguments: invoke(*SEARCH, "--dataset-dir", dataset, *arguments)


def test_a_wrong_key_stops_at_once(search: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    refusal = Step(status=401, body={"error": {"message": "bad key"}})
    with serve(refusal, RIGHT) as server:
        done = search("--base-url", server.url)
        assert done.code == ExitCode.MODEL
        assert len(server.bodies) == 1
        assert "401" in done.err
        assert "OPENAI_API_KEY" in done.err
        assert "sk-wrong" not in done.out + done.err
        # With the right key the same command goes on.
        again = search("--base-url", server.url)
    assert again.code == ExitCode.OK, again.err
    assert "start: start:" not in again.err


def test_a_wrong_key_is_noticed_before_the_device_works(
    search: Invoke, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    monkeypatch.setattr("kernelblaster.runs.optimize.choose_device", lambda *_: pytest.fail("a device was looked for"))
    with serve(RIGHT, listing=Step(status=401, body={"error": {"message": "bad key"}})) as server:
        done = search("--base-url", server.url)
    assert done.code == ExitCode.MODEL
    assert server.bodies == []
    assert len(done.err.splitlines()) == 2
    assert "401" in done.err
    assert not list(clean.iterdir())


def test_rate_limits_are_waited_out(search: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-right")
    limited = Step(status=429, body={"error": {"message": "slow down"}}, headers={"retry-after": "0.1"})
    with serve(limited, RIGHT) as server:
        done = search("--base-url", server.url)
    assert done.code == ExitCode.OK, done.err
    assert "price unknown" in done.out


def test_an_endpoint_that_is_not_there(search: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelblaster.models.probe.WAIT_S", 0.01)
    done = search("--base-url=http://127.0.0.1:9/v1")
    assert done.code == ExitCode.MODEL
    assert "127.0.0.1:9" in done.err


def test_a_dollar_cap_wants_a_price(search: Invoke, clean: Path) -> None:
    with serve(RIGHT) as server:
        done = search("--base-url", server.url, "--model", "unheard-of", "--max-dollars", "1")
    assert done.code == ExitCode.USAGE
    assert server.bodies == []
    assert "--price" in done.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("model.stages=repair",), "model.stages"),
        (("model.prices=gpt-5=1",), "model.prices"),
        (("model.stages=repair=unheard-of", "budget.dollars=1", "model.prices=gpt-5-mini=1:2"), "model.prices"),
    ],
)
def test_what_is_wrong_with_models_is_told_before_anybody_is_asked(
    search: Invoke, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], named: str
) -> None:
    monkeypatch.setattr("kernelblaster.models.probe.check_model", lambda _: pytest.fail("the endpoint was asked"))
    done = search("--base-url=http://127.0.0.1:9/v1", *(f"--set={option}" for option in options))
    assert done.code == ExitCode.USAGE
    assert named in done.err


def test_batch_exchange_waits_and_continues(search: Invoke, invoke: Invoke) -> None:
    arguments = ("--model-kind", "batch_exchange", "--json")
    starts = asked = 0
    with serve(RIGHT) as server:
        while (done := search(*arguments)).code == ExitCode.WAITING:
            (pending,) = done.json["pending_requests"]
            starts += 1
            assert starts < 6
            answered = invoke("answer", Path(pending).parent, "--base-url", server.url)
            assert answered.code == ExitCode.OK, answered.err
            new = len(server.bodies) - asked
            assert f": {new}" in answered.out
            assert (f"{asked} had replies before" in answered.out) == (asked > 0)
            asked += new
    assert done.code == ExitCode.OK, done.err
    again = invoke("answer", Path(pending).parent, "--base-url", "http://127.0.0.1:9/v1")
    assert again.code == ExitCode.OK
    assert again.out.endswith(": 0; 4 had replies before\n")
    assert (starts, asked) == (3, 4)  # candidate; reflection and the pair's lesson; veto
    assert done.json["spending"]["calls"] == 4


def test_waiting_says_what_to_do(search: Invoke) -> None:
    done = search("--model-kind", "batch_exchange")
    assert done.code == ExitCode.WAITING
    assert "requests-001.jsonl" in done.out


def test_answering_with_a_wrong_key_stops(search: Invoke, invoke: Invoke) -> None:
    (pending,) = search("--model-kind", "batch_exchange", "--json").json["pending_requests"]
    folder = Path(pending).parent
    with serve(Step(status=401, body={"error": {"message": "bad key"}})) as server:
        done = invoke("answer", folder, "--base-url", server.url)
        assert done.code == ExitCode.MODEL
        assert len(server.bodies) == 1
        capped = invoke("answer", folder, "--base-url", server.url, "--model", "unheard-of", "--max-dollars", "1")
        assert capped.code == ExitCode.USAGE
        assert "--price" in capped.err
