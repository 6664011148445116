"""The seed preset: its values, each taken back alone, and PyTorch's time in its reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_judge import FACTS, FakeJudge, evaluation, kernel, timing

from kernelblaster.config.training import Advantage, Baseline, Loss, Preset, TrainConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.against_pytorch import against_pytorch
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, PytorchTimes
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import size_digest
from kernelblaster.training.comparing import eager_times
from kernelblaster.training.judging import PolicyCompletion, Scorer, StoredJudge
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import Stage, plan_of

EAGER = ModeTime(
    us=300.0, low_us=290.0, high_us=310.0, samples=20, wall_us=310.0, wall_low_us=300.0, wall_high_us=320.0,
    launch_us=None,
)  # fmt: skip


def test_the_seed_preset_has_the_values_of_the_report() -> None:
    config = TrainConfig(preset=Preset.SEED)
    assert (config.lora_rank, config.lora_alpha, config.lora_dropout, config.temperature) == (16, 32, 0.05, 1.0)
    assert (config.groups, config.turns, config.curriculum) == (1, 1, False)
    for stage, reward in ((Stage.FRONTEND, "two-stage-correct"), (Stage.MIDEND, "two-stage-fast")):
        plan = plan_of(config, stage)
        assert (plan.generations, plan.learning_rate, plan.beta) == (4, 1e-6, 0.1)
        assert (plan.prompt_tokens, plan.completion_tokens) == (512, 512)
        assert (plan.loss, plan.advantage, plan.reward) == (Loss.GRPO, Advantage.MEAN, reward)
    assert plan_of(config, Stage.MIDEND).baseline is Baseline.PYTORCH


@pytest.mark.parametrize("stage", [Stage.FRONTEND, Stage.MIDEND])
def test_each_difference_between_the_presets_can_be_taken_back_alone(stage: Stage) -> None:
    """From one preset, setting by setting, to the other."""
    ours, seed = (plan_of(TrainConfig(preset=one), stage) for one in (Preset.OURS, Preset.SEED))
    differing = {name for name in vars(ours) if getattr(ours, name) != getattr(seed, name)}
    assert differing >= {"reward", "loss", "advantage", "beta", "prompt_tokens", "completion_tokens"}
    for name in differing:
        one = plan_of(TrainConfig.model_validate({name: getattr(seed, name)}), stage)
        assert one == replace(ours, **{name: getattr(seed, name)})


def test_the_report_s_reward_is_one_and_pytorch_s_time_over_the_kernel_s(stored: Callable[[], StoredJudge]) -> None:
    row = PromptRow(
        prompt=(Message(role="user", content="?"),), problem="level1/023", stage="midend", precision="fp16",
        size="small", family="softmax", split="train", parent=kernel(Verdict.CORRECT),
    )  # fmt: skip
    scheme = REWARDS.get("two-stage-fast")(RewardOptions())
    source = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)  # 50 us, twice as fast as the start
    replies = [
        PolicyCompletion(row, f"```cuda\n{one}```\n", tokens=1) for one in (source, kernel(Verdict.WRONG_VALUES))
    ]
    found = Scorer(stored(), scheme, Baseline.PYTORCH, pytorch={"level1/023": EAGER}).score(replies)
    assert [one.reward for one in found] == pytest.approx([1 + 300 / 50, -10.0])
    assert found[0].speedup == pytest.approx(6.0)
    untimed = Scorer(stored(), scheme, Baseline.PYTORCH).score(replies[:1])
    assert untimed[0].reward is None


def test_a_gain_over_pytorch_that_is_hardly_to_be_believed_is_measured_again(
    stored: Callable[[], StoredJudge], judge: FakeJudge
) -> None:
    row = PromptRow(
        prompt=(Message(role="user", content="?"),), problem="level1/023", stage="midend", precision="fp16",
        size="small", family="softmax", split="train",
    )  # fmt: skip
    scheme = REWARDS.get("two-stage-fast")(RewardOptions())
    for speedup, times_judged in (
        (3.0, 1),
        (5.0, 2),
    ):  # 9 and 15 times as fast as PyTorch
        source = kernel(Verdict.CORRECT, speedup, Decision.FASTER)
        (found,) = Scorer(stored(), scheme, Baseline.PYTORCH, pytorch={"level1/023": EAGER}).score(
            [PolicyCompletion(row, f"```cuda\n{source}```\n", tokens=1)]
        )
        assert judge.judged.count(source) == times_judged
        assert found.suspicious == (times_judged == 2)


def test_a_ratio_to_pytorch_is_decided_by_the_ends_of_both_intervals() -> None:
    found = evaluation(Verdict.CORRECT, 2.0, Decision.FASTER)
    decisions = []
    for us in (250.0, 298.0, 400.0):
        found.timing = timing(us)
        compared = against_pytorch(found, EAGER).comparison
        assert compared is not None
        assert compared.low <= compared.speedup <= compared.high
        decisions.append(compared.decision)
    assert decisions == [Decision.FASTER, Decision.INCONCLUSIVE, Decision.SLOWER]


def times(problem: Problem, gpu: str = FACTS.name, digest: str | None = None) -> PytorchTimes:
    return PytorchTimes(
        problem=str(problem.id), name=problem.name, precision=Precision.FP16, workload="small",
        digest=size_digest(problem, "small") if digest is None else digest, gpu=gpu, driver=None, torch="2",
        settings=None, cover_us=0.0, conditions=None, floor_us=None, times={TorchMode.EAGER: EAGER}, seconds=0.0,
        at=0.0,
    )  # fmt: skip


def test_times_are_of_this_gpu_and_this_reference_or_the_stage_does_not_begin(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    problem, file = catalogue.find("L1_23"), tmp_path / "times.jsonl"

    def found(*rows: PytorchTimes) -> dict[str, ModeTime]:
        file.write_text("".join(f"{row.model_dump_json()}\n" for row in rows))
        return eager_times([problem], FACTS, Precision.FP16, "small", file)

    assert found(times(problem)) == {"level1/023": EAGER}
    for other in (times(problem, gpu="another"), times(problem, digest="another")):
        with pytest.raises(UsageError, match="level1/023"):
            found(other)


def test_modelled_times_are_not_compared_with_measured_ones(catalogue: Catalogue) -> None:
    emulated = FACTS.model_copy(update={"kind": DeviceKind.EMULATED})
    with pytest.raises(UsageError, match="emulated"):
        eager_times([catalogue.find("L1_23")], emulated, Precision.FP16, "small", None)
