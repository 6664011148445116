"""A trained model that a search asks without vLLM: the server, and the commands from training to a search."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")
sys.path.append(str(Path(__file__).parents[1] / "cli"))

import torch
from cli_support import call, make_dataset, start
from pydantic import SecretStr

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.config.training import TrainConfig
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.models.base import Message, Purpose, Request
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.openai_api import OpenAiModel
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rows import SftRow, answer, write_rows
from kernelblaster.training.running import open_served, run_warmup
from kernelblaster.training.serving import ServedModel, serve
from kernelblaster.training.tiny_model import write_model

LEARNED = {"softmax": "a kernel", "relu": "another, longer one"}
BATCH = 3
_slots = itertools.count()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingLayout, TrainConfig]:
    """What `train sft` leaves where two replies were learned by heart."""
    root = tmp_path_factory.mktemp("trained")
    base, layout = write_model(root / "base"), TrainingLayout(root / "my")
    rows = [
        SftRow(
            prompt=(Message(role="user", content=asked),), completion=answer(reply), problem="level1/023",
            stage="frontend", verdict="correct", speedup=None, source="test", candidate_sha256="", family="softmax",
            split="train",
        )
        for asked, reply in LEARNED.items()
    ]  # fmt: skip
    write_rows(layout.data / "sft.jsonl", rows)
    config = TrainConfig(
        model=base, steps=60, checkpoint_steps=60, warmup_learning_rate=1e-2, lora_dropout=0.0, prompt_tokens=64,
        completion_tokens=24,
    )  # fmt: skip
    run_warmup(layout, config)
    return layout, config


@contextmanager
def serving(model: ServedModel) -> Iterator[str]:
    """Its base URL, while it answers in a thread of its own."""
    ready, told = threading.Event(), []

    def on_ready(url: str) -> None:
        told.append(url)
        ready.set()

    threading.Thread(target=serve, args=(model, 0, on_ready), daemon=True).start()
    assert ready.wait(30)
    yield told[0]


@pytest.fixture(scope="module")
def url(trained: tuple[TrainingLayout, TrainConfig]) -> Iterator[str]:
    with serving(open_served(*trained, "sft", BATCH)) as at:
        yield at


def asking(url: str, directory: Path, **given: Any) -> OpenAiModel:
    config = ModelConfig(name="sft", base_url=url, api_key=SecretStr("none"), max_retries=0, temperature=0.0, **given)
    return OpenAiModel(config, CostLedger(directory / "ledger.jsonl", BudgetConfig()), None)


def asked(content: str) -> Request:
    messages = (Message(role="user", content=content),)
    return Request(messages=messages, purpose=Purpose.GENERATE, slot=f"{content}/{next(_slots)}")


@pytest.mark.parametrize("stream", [True, False])
def test_a_search_is_answered_by_what_was_trained_many_requests_together(
    url: str, tmp_path: Path, stream: bool
) -> None:
    model = asking(url, tmp_path, stream=stream)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(model.complete(asked(one)) for one in [*LEARNED] * BATCH))

    replies = asyncio.run(all_at_once())
    assert [one.text for one in replies] == [*LEARNED.values()] * BATCH
    assert {one.finish_reason for one in replies} == {"stop"}
    for one, text in zip(replies, [*LEARNED.values()] * BATCH, strict=True):
        assert one.usage.completion_tokens == len(text) + 1  # bytes, and the end
        assert not one.usage.estimated


def test_a_reply_ends_where_the_request_says(url: str, tmp_path: Path) -> None:
    found = asyncio.run(asking(url, tmp_path, max_completion_tokens=3).complete(asked("softmax")))
    assert (found.text, found.finish_reason) == ("a k", "length")


def post(url: str, body: Any, content_type: str = "application/json") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/chat/completions", data, {"Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_what_cannot_be_answered_is_told_and_the_next_request_is_answered(url: str) -> None:
    body = {"model": "sft", "messages": [{"role": "user", "content": "softmax"}], "temperature": 0}
    long = [{"role": "user", "content": "x" * 50_000}]
    refused = [
        (404, {**body, "model": "other"}), (400, {**body, "messages": []}), (400, {**body, "messages": long}),
        (400, {**body, "temperature": -1}), (400, {**body, "n": 2}), (400, b"{"),
    ]  # fmt: skip
    for status, wrong in refused:
        code, told = post(url, wrong)
        assert code == status
        assert told["error"]["message"]
    assert post(url, body, "text/plain")[0] == 415
    assert post(url, body)[1]["choices"][0]["message"]["content"] == LEARNED["softmax"]
    with urllib.request.urlopen(f"{url}/models", timeout=60) as response:
        assert [one["id"] for one in json.load(response)["data"]] == ["sft"]


def test_a_generator_that_fails_answers_so_and_goes_on(trained: tuple[TrainingLayout, TrainConfig]) -> None:
    model = open_served(*trained, "sft", BATCH)
    policy = model._policy
    plain, failures = policy.model.generate, [torch.OutOfMemoryError("no room")]

    def failing(**given: Any) -> Any:
        if failures:
            raise failures.pop()
        return plain(**given)

    policy.model.generate = failing
    body = {"model": "sft", "messages": [{"role": "user", "content": "relu"}], "temperature": 0}
    with serving(model) as at:
        assert post(at, body)[0] == 503
        assert post(at, body)[1]["choices"][0]["message"]["content"] == LEARNED["relu"]


def test_weights_that_are_not_there_and_a_port_that_is_taken_are_told(
    trained: tuple[TrainingLayout, TrainConfig], url: str
) -> None:
    with pytest.raises(UsageError, match="no trained 'midend'"):
        open_served(*trained, "midend", 1)
    with pytest.raises(UsageError, match="port"):
        serve(SimpleNamespace(), int(url.split(":")[2].partition("/")[0]), lambda _: None)  # type: ignore[arg-type]


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
@pytest.mark.timeout(600)
def test_the_commands_lead_from_trained_weights_to_a_search(
    trained: tuple[TrainingLayout, TrainConfig], tmp_path: Path
) -> None:
    layout, config = trained
    server = start(("train", "serve", layout.root, "--weights", "sft", "--model", config.model, "--port", 0), tmp_path)
    try:
        assert server.stdout is not None
        command = server.stdout.readline().partition(": ")[2].split()[1:]
        done = call(
            (
                *command, "--rollouts", 1, "--steps", 1, "--device", "emulated", "--experiment", "mine", "--json",
                "--dataset-dir", make_dataset(tmp_path / "data"), "--max-completion-tokens", 8,
            ),
            tmp_path,
            timeout_s=500,
        )  # fmt: skip
    finally:
        server.kill()
        server.communicate()
    told = json.loads(done.out)
    assert done.code == ExitCode.NO_IMPROVEMENT, (
        done.err
    )  # the search went its way to the end; what it was told is no kernel
    assert told["model"] == "sft"
    assert told["spending"]["calls"] > 0
