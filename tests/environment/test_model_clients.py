"""Programs that let a model of OpenAI's protocol play on a server, as their users start them. Needs the extra `env`."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from scripted_endpoint import MODEL, scripted_endpoint
from soaking import Served, serving

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.server import ServedAction
from kernelblaster.evaluation.results import Decision, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
FASTER = f"```cuda\n{kernel(Verdict.CORRECT, 2.0, Decision.FASTER)}```"
WRONG = f"A first try:\n```cuda\n{kernel(Verdict.WRONG_VALUES)}```"


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue) as found:
        yield found


def test_the_plain_loop_asks_a_model_and_shows_it_the_feedback(served, monkeypatch) -> None:
    example = runpy.run_path(str(EXAMPLES / "environment_loop.py"))
    with scripted_endpoint([WRONG, FASTER]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        answer = example["from_model"](MODEL)
        best = example["play"](served.url, "L1_23", lambda seen: answer(seen) if seen.turn < 2 else None)
    assert best == pytest.approx(1.0)
    first, second = (asked["messages"] for asked in model.asked)
    assert "launch_gpu_implementation" in first[0]["content"]
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert "wrong_values" in second[2]["content"]


def test_code_alone_is_required_so_that_a_bare_reply_is_an_action() -> None:
    """verifiers sends a reply that is no JSON as the one required field."""
    assert ServedAction.model_json_schema()["required"] == ["code"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("vf-eval") is None, reason="needs verifiers and uv: verifiers[openenv]==0.4.0")
def test_verifiers_plays_its_own_task_set_on_the_server(served, tmp_path) -> None:
    config = (EXAMPLES / "verifiers_eval.toml").read_text(encoding="utf-8")
    config = config.replace("http://127.0.0.1:8000", served.url).replace("out/verifiers", str(tmp_path / "out"))
    with scripted_endpoint([FASTER]) as model:
        file = tmp_path / "eval.toml"
        file.write_text(config.replace("https://api.openai.com/v1", model.url))
        subprocess.run(
            [shutil.which("vf-eval"), "@", str(file), "-m", MODEL], check=True, timeout=300,
            env={**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "OPENAI_API_KEY": "x"},
        )  # fmt: skip
    (traces,) = tmp_path.glob("out/*/traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    scores = [episode["traces"][0]["rewards"]["openenv_reward"]["score"] for episode in episodes]
    assert scores == [pytest.approx(1.0)] * 2
