"""Generation by vLLM, in place of TRL's class that speaks to it: what it is asked, and what is kept of its answers."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

from fake_judge import FakeJudge, kernel

from kernelblaster.config.training import Generator, TrainConfig
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import Message
from kernelblaster.training import policy
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, write_rows
from kernelblaster.training.running import run_stage
from kernelblaster.training.stages import Stage
from kernelblaster.training.tiny_model import write_model

END = 2
CHOICES = {"a": kernel(Verdict.COMPILE_ERROR), "b": kernel(Verdict.CORRECT)}


class Killed(BaseException):
    """The process dies here."""


class FakeVllm:
    """Answers `a` and `b` in turns; of one token in two the log-probability is not known."""

    made: ClassVar[list[FakeVllm]] = []

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.asked: list[tuple[int, int]] = []
        self.synced = 0
        info = {"model_config": {"logprobs_mode": "processed_logprobs"}}
        self.vllm_client = SimpleNamespace(get_server_info=lambda: info)
        self.made.append(self)

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, prompts: list[list[int]], num_generations: int, **_: Any) -> tuple[Any, ...]:
        self.asked.append((len(prompts), num_generations))
        tokenizer = self.arguments["processing_class"]
        texts = [tokenizer.encode("ab"[place % 2], add_special_tokens=False) for place in range(len(prompts))]
        completions = [[*ids, END] for ids in texts]
        return prompts, completions, [[[-1.0]] * (len(one) - 1) + [[math.nan]] for one in completions], None


@pytest.fixture
def layout(tmp_path: Path) -> TrainingLayout:
    found = TrainingLayout(tmp_path / "run")
    row = PromptRow(
        prompt=(Message(role="user", content="softmax"),), problem="level1/023", stage="frontend", precision="fp16",
        size="small", family="softmax", split="train", reply=ReplyForm.CHOICE, choices=json.dumps(CHOICES),
    )  # fmt: skip
    write_rows(found.prompts(Stage.FRONTEND), [row])
    return found


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> type[FakeVllm]:
    monkeypatch.setattr(importlib.import_module("trl.trainer.grpo_trainer"), "VLLMGeneration", FakeVllm)
    monkeypatch.setattr(policy, "find_spec", lambda name: object())
    monkeypatch.setattr(FakeVllm, "made", [])
    return FakeVllm


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., TrainConfig]:
    base = write_model(tmp_path / "base")
    return lambda **given: TrainConfig(model=base, steps=2, prompt_tokens=64, completion_tokens=3, **given)


@pytest.mark.parametrize("generator", [Generator.VLLM_COLOCATE, Generator.VLLM_SERVER])
def test_a_stage_is_generated_there_and_its_answers_are_kept_over_a_kill(
    generator: Generator, layout: TrainingLayout, vllm: type[FakeVllm], settings: Callable[..., TrainConfig],
    stored: Callable[[], StoredJudge], judge: FakeJudge,
) -> None:  # fmt: skip
    config = settings(generator=generator, vllm_server="http://127.0.0.1:9876")

    def moment(name: str, step: int) -> None:
        if (name, step) == ("judged", 1):
            raise Killed

    with pytest.raises(Killed):
        run_stage(layout, config, Stage.FRONTEND, stored(), moment)
    record = run_stage(layout, config, Stage.FRONTEND, stored())
    first, second = vllm.made
    assert first.asked == [(4, 4), (4, 4)]
    assert second.asked == []  # both steps were there, with what is not known of their tokens
    assert first.synced == 2
    assert [one.completion for one in read_rollouts(layout.stage(Stage.FRONTEND))] == ["a", "b"] * 4
    assert record.updates == 2
    assert record.metrics is not None
    assert record.metrics.informative_groups == 1.0
    if generator is Generator.VLLM_SERVER:
        assert (first.arguments["mode"], first.arguments["server_base_url"]) == ("server", "http://127.0.0.1:9876")
    else:
        assert (first.arguments["mode"], first.arguments["max_model_length"]) == ("colocate", 64 + 3)


def test_what_transformers_wrote_before_a_kill_is_learned_from_with_vllm(
    layout: TrainingLayout, vllm: type[FakeVllm], settings: Callable[..., TrainConfig],
    stored: Callable[[], StoredJudge],
) -> None:  # fmt: skip
    def moment(name: str, step: int) -> None:
        if name == "judged":
            raise Killed

    with pytest.raises(Killed):
        run_stage(layout, settings(), Stage.FRONTEND, stored(), moment)
    record = run_stage(layout, settings(generator=Generator.VLLM_SERVER), Stage.FRONTEND, stored())
    assert record.updates == 2
    assert [one.asked for one in vllm.made] == [[(4, 4)]]  # the second step alone
