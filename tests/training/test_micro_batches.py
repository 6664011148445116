"""Updates in smaller pieces: the same gradients, whatever the loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from fake_judge import kernel
from transformers import Trainer, TrainerCallback

from kernelblaster.config.training import Loss, TrainConfig
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import Message
from kernelblaster.training.grpo import KernelTrainer
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.policy import micro_batch
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, write_rows
from kernelblaster.training.running import run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.tiny_model import write_model

CHOICES = {"a": kernel(Verdict.COMPILE_ERROR), "b": kernel(Verdict.RUNTIME_ERROR), "e": kernel(Verdict.CORRECT)}
Gradients = list[dict[str, torch.Tensor]]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("base"))


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> Gradients:
    """Those of each update, before it is made."""
    found: Gradients = []

    class Notes(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            args.max_grad_norm = 0.0  # else a factor would not show

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            known = ((name, one.grad) for name, one in model.named_parameters())
            found.append({name: grad.clone() for name, grad in known if grad is not None})

    plain = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, **given: (self.add_callback(Notes()), plain(self, **given))[1])
    return found


def lay_out(root: Path) -> TrainingLayout:
    layout = TrainingLayout(root)
    rows = [
        PromptRow(
            prompt=(Message(role="user", content=text),), problem="level1/023", stage="frontend", precision="fp16",
            size="small", family="softmax", split="train", reply=ReplyForm.CHOICE, choices=json.dumps(CHOICES),
        )
        for text in ("softmax", "a longer question on softmax")
    ]  # fmt: skip
    write_rows(layout.prompts(Stage.FRONTEND), rows)
    warmup = [
        SftRow(
            prompt=row.prompt, completion=answer(letter * length), problem=row.problem, stage="frontend",
            verdict="correct", speedup=None, source="template", candidate_sha256="", family="softmax", split="train",
        )
        for row in rows for letter, length in zip("abe", (1, 5, 9), strict=True)
    ]  # fmt: skip
    write_rows(layout.data / "sft.jsonl", warmup)
    return layout


def settings(base: Path, **given: object) -> TrainConfig:
    values: dict[str, object] = {
        "model": base, "steps": 1, "groups": 2, "completion_tokens": 6, "prompt_tokens": 64, "lora_dropout": 0.0,
        "checkpoint_steps": 1,
    }  # fmt: skip
    return TrainConfig.model_validate(values | given)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    assert any(grad.abs().max() > 0 for grad in one.values())
    return all(torch.allclose(one[name], other[name], rtol=1e-3, atol=1e-6) for name in one)


@pytest.mark.parametrize(("loss", "beta"), [(Loss.DR_GRPO, 0.0), (Loss.GRPO, 0.1), (Loss.DAPO, 0.0)])
def test_a_stage_has_the_same_gradients_in_smaller_pieces(
    base: Path,
    stored: Callable[[], StoredJudge],
    tmp_path: Path,
    gradients: Gradients,
    loss: Loss,
    beta: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # An untrained model names no kernel: its replies are told apart by their places.
    monkeypatch.setattr(KernelTrainer, "kernel_reward", lambda self, prompts, **_: [float(n % 3) for n in range(8)])
    for size in (None, 1, 3, 8):
        layout = lay_out(tmp_path / str(size))
        run_stage(layout, settings(base, loss=loss, beta=beta, micro_batch=size), Stage.FRONTEND, stored())
    assert [same(gradients[0], other) for other in gradients[1:]] == [True] * 3


def test_a_warm_up_has_the_same_gradients_in_smaller_pieces(base: Path, tmp_path: Path, gradients: Gradients) -> None:
    for size in (None, 1, 3):
        run_warmup(lay_out(tmp_path / str(size)), settings(base, micro_batch=size, steps=2))
    whole, *others = gradients[::2]
    assert [same(whole, other) for other in others] == [True] * 2


def test_a_stage_goes_on_in_smaller_pieces(base: Path, stored: Callable[[], StoredJudge], tmp_path: Path) -> None:
    layout = lay_out(tmp_path)
    run_stage(layout, settings(base), Stage.FRONTEND, stored())
    assert run_stage(layout, settings(base, steps=3, micro_batch=2), Stage.FRONTEND, stored()).updates == 3


def test_a_piece_is_the_most_that_divides_an_update() -> None:
    for samples in range(1, 40):
        for most in range(1, 40):
            size = micro_batch(samples, most)
            assert size <= most
            assert samples % size == 0
            assert not any(samples % larger == 0 for larger in range(size + 1, min(most, samples) + 1))
