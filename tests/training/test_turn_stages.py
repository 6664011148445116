"""Stages with several turns, with a model made here: what is trained on, and kills at every moment of every turn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from fake_judge import FakeJudge, kernel
from safetensors.torch import load_file

from kernelblaster.config.training import TrainConfig, TurnCredit
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import Message
from kernelblaster.training.arms import BASE, Arm
from kernelblaster.training.grpo import KernelTrainer
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rollouts import Rollout, read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, write_rows
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.tiny_model import write_model
from kernelblaster.training.turns import discounted_returns

CHOICES = {
    "a": kernel(Verdict.COMPILE_ERROR), "b": kernel(Verdict.WRONG_VALUES), "c": kernel(Verdict.RUNTIME_ERROR),
    "d": kernel(Verdict.CORRECT),
}  # fmt: skip


class Killed(BaseException):
    """The process dies here."""


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("base"))


def lay_out(root: Path) -> TrainingLayout:
    layout = TrainingLayout(root)
    row = PromptRow(
        prompt=(Message(role="user", content="softmax"),), problem="level1/023", stage="frontend", precision="fp16",
        size="small", family="softmax", split="train", reply=ReplyForm.CHOICE, choices=json.dumps(CHOICES),
    )  # fmt: skip
    write_rows(layout.prompts(Stage.FRONTEND), [row])
    letters = [
        SftRow(
            prompt=row.prompt, completion=answer(letter), problem=row.problem, stage="frontend", verdict="format",
            speedup=None, source="template", candidate_sha256="", family="softmax", split="train",
        )
        for letter in CHOICES
    ]  # fmt: skip
    write_rows(layout.data / "sft.jsonl", letters)
    return layout


def settings(base: Path, **given: object) -> TrainConfig:
    values: dict[str, object] = {
        "model": base, "steps": 2, "turns": 3, "generations": 4, "completion_tokens": 3, "prompt_tokens": 2000,
        "feedback_characters": 40, "warmup_learning_rate": 1e-2, "learning_rate": 1e-3,
    }  # fmt: skip
    return TrainConfig.model_validate(values | given)


@pytest.fixture
def warm(base: Path, tmp_path: Path) -> Callable[[str], TrainingLayout]:
    """Lays out trainings whose model has learned the letters, so that replies differ in their worth."""
    first = lay_out(tmp_path / "warm")
    run_warmup(first, settings(base, steps=30))

    def made(name: str) -> TrainingLayout:
        layout = lay_out(tmp_path / name)
        (layout.root / "sft").symlink_to(first.root / "sft")
        return layout

    return made


def told(layout: TrainingLayout) -> list[Rollout]:
    rollouts = read_rollouts(layout.stage(Stage.FRONTEND))
    return [one.model_copy(update={"judge_seconds": 0.0}) for one in rollouts]


def weights(layout: TrainingLayout) -> dict[str, torch.Tensor]:
    return load_file(layout.adapter(layout.stage(Stage.FRONTEND)) / "adapter_model.safetensors")


def test_each_turn_is_compared_with_the_same_turn_of_the_others_by_its_return(
    base: Path,
    warm: Callable[[str], TrainingLayout],
    stored: Callable[[], StoredJudge],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    outputs: list[dict[str, Any]] = []
    plain = KernelTrainer._generate_and_score_completions

    def noting(self: KernelTrainer, inputs: Any) -> Any:
        outputs.append(plain(self, inputs))
        return outputs[-1]

    monkeypatch.setattr(KernelTrainer, "_generate_and_score_completions", noting)
    layout = warm("returns")
    run_stage(layout, settings(base), Stage.FRONTEND, stored())
    for step, output in enumerate(outputs):
        rollouts = [one for one in told(layout) if one.step == step]
        returns = {}
        by_dialogue = sorted(rollouts, key=lambda one: (one.dialogue, one.turn))
        for _, turns in groupby(by_dialogue, key=lambda one: one.dialogue):
            dialogue = list(turns)
            values = discounted_returns([one.reward for one in dialogue], 3, 0.4)
            returns |= {one.index: value for one, value in zip(dialogue, values, strict=True)}
        for index in range(12):
            if index not in returns:
                assert output["advantages"][index] == 0
                assert (output["tool_mask"][index] * output["completion_mask"][index]).sum() == 0
                continue
            others = [
                returns[other]
                for other in range(index // 4 * 4, index // 4 * 4 + 4)
                if other in returns and other != index
            ]
            expected = returns[index] - sum(others) / len(others) if others else 0.0
            assert output["advantages"][index].item() == pytest.approx(expected, abs=1e-5)
    assert "returned None" not in capfd.readouterr().err  # a turn that was not taken is no news
    reached = [sum(one.turn == turn for one in told(layout)) for turn in range(3)]
    assert reached[0] == 8
    assert 8 > reached[1] >= reached[2]  # some were correct at once
    assert all(
        one.verdict != Verdict.CORRECT
        for one in told(layout)
        if any(other.follows == (one.step, one.index) for other in told(layout))
    )


@pytest.mark.timeout(900)  # some thirty starts of a stage
@pytest.mark.parametrize("credit", TurnCredit)
def test_killed_at_every_moment_of_every_turn_it_ends_as_if_it_had_not_been(
    base: Path, warm: Callable[[str], TrainingLayout], stored: Callable[[], StoredJudge], judge: FakeJudge,
    credit: TurnCredit,
) -> None:  # fmt: skip
    config = settings(base, turns=2, turn_credit=credit, steps=3, groups=2, checkpoint_steps=2)
    undisturbed, disturbed = warm("undisturbed"), warm("disturbed")
    run_stage(undisturbed, config, Stage.FRONTEND, stored())
    killed: set[tuple[str, int, int]] = set()

    def start() -> None:
        """Ends at the first moment at which none has ended before."""
        seen: Counter[tuple[str, int]] = Counter()

        def moment(name: str, step: int) -> None:
            seen[name, step] += 1
            at = (name, step, seen[name, step])
            if at not in killed:
                killed.add(at)
                raise Killed

        run_stage(disturbed, config, Stage.FRONTEND, stored(), moment)

    for _ in range(100):
        with suppress(Killed):
            start()
            break
    assert {name for name, _, _ in killed} == {"generating", "generated", "judged", "updated", "saving", "saved"}
    assert ("judged", 0, 2) in killed or credit is TurnCredit.IMMEDIATE
    assert told(undisturbed) == told(disturbed)
    assert any(one.turn for one in told(undisturbed))
    one, other = weights(undisturbed), weights(disturbed)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(judge.judged) == len(set(judge.judged))


def test_immediate_credit_asks_next_turns_in_later_steps(
    base: Path, warm: Callable[[str], TrainingLayout], stored: Callable[[], StoredJudge]
) -> None:
    layout = warm("immediate")
    config = settings(base, turn_credit=TurnCredit.IMMEDIATE, steps=6, groups=2)
    record = run_stage(layout, config, Stage.FRONTEND, stored())
    rollouts = {(one.step, one.index): one for one in told(layout)}
    later = [one for one in rollouts.values() if one.turn]
    assert later
    for one in later:
        assert one.follows is not None
        before = rollouts[one.follows]
        assert before.step < one.step
        assert before.turn == one.turn - 1
        assert before.reward is not None
        assert before.reward < 1.0
    assert record.metrics is not None
    assert record.metrics.dialogues == record.metrics.completions == 6 * 8


def test_an_evaluation_answers_in_turns_and_counts_a_dialogue_once(
    base: Path, warm: Callable[[str], TrainingLayout], stored: Callable[[], StoredJudge]
) -> None:
    layout = warm("eval")
    once = run_evaluation(layout, settings(base, turns=1, samples=16), stored(), Arm("sft", Stage.FRONTEND, "train"))
    other = warm("eval3")
    found = run_evaluation(other, settings(base, samples=16), stored(), Arm("sft", Stage.FRONTEND, "train"))
    assert found.overall.dialogues == once.overall.completions == 16
    assert found.overall.completions > 16
    assert found.estimates["correct"].value == found.overall.solved_rate
    assert found.estimates["correct"].value >= once.estimates["correct"].value  # the first turns are the same
    with pytest.raises(Exception, match="other rules"):
        run_evaluation(layout, settings(base, samples=16), stored(), Arm("sft", Stage.FRONTEND, "train"))
    assert BASE == "base"
