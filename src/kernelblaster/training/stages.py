"""The stages, and the values that a preset gives them.

`seed` is "Accurate and Efficient CUDA Generation through Reinforcement Learning" (report, December 2025): K = 4,
learning rate 1e-6, KL weight 0.1, 512 + 512 tokens, rewards -10 / 1 and -10 / 1 + speed-up, advantages without division
by the spread. `ours` differs where that teaches nothing or can be fooled: rewards by degrees, bounded and in logarithms
of the speed-up, token losses that do not prefer long answers (Dr. GRPO, arXiv 2503.20783), leave-one-out baselines
(arXiv 2402.14740), completions long enough for a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from kernelblaster.config.training import Advantage, Baseline, BeginWith, Loss, Preset, TrainConfig

Value = TypeVar("Value")


class Stage(StrEnum):
    """What is learned."""

    FRONTEND = "frontend"
    """From the reference to a correct kernel."""
    MIDEND = "midend"
    """From a correct kernel to a faster one."""
    BACKEND = "backend"
    """The same on one architecture, with counters, bottleneck and a technique in the prompt."""


@dataclass(frozen=True)
class StagePlan:
    """Settings of a stage, all of them known. Names as in `TrainConfig`."""

    stage: Stage
    reward: str
    generations: int
    loss: Loss
    advantage: Advantage
    beta: float
    learning_rate: float
    prompt_tokens: int
    completion_tokens: int
    baseline: Baseline
    begin_with: BeginWith


_REWARDS = {
    (Preset.OURS, Stage.FRONTEND): "graded",
    (Preset.OURS, Stage.MIDEND): "seed",
    (Preset.OURS, Stage.BACKEND): "profile",
    (Preset.SEED, Stage.FRONTEND): "two-stage-correct",
    (Preset.SEED, Stage.MIDEND): "two-stage-fast",
    (Preset.SEED, Stage.BACKEND): "two-stage-fast",
}
"""`seed` among reward schemes is the environment's: 0 to 1.3, with the logarithm of the speed-up capped. The report has
two stages: its preset rewards a third as the second."""
_OURS = StagePlan(
    stage=Stage.FRONTEND,
    reward=_REWARDS[Preset.OURS, Stage.FRONTEND],
    generations=4,
    loss=Loss.DR_GRPO,
    advantage=Advantage.LEAVE_ONE_OUT,
    beta=0.0,
    learning_rate=1e-6,
    prompt_tokens=4096,
    completion_tokens=4096,
    baseline=Baseline.PARENT,
    begin_with=BeginWith.LAST,
)
_SEED = StagePlan(
    stage=Stage.FRONTEND,
    reward=_REWARDS[Preset.SEED, Stage.FRONTEND],
    generations=4,
    loss=Loss.GRPO,
    advantage=Advantage.MEAN,
    beta=0.1,
    learning_rate=1e-6,
    prompt_tokens=512,
    completion_tokens=512,
    baseline=Baseline.PYTORCH,
    begin_with=BeginWith.LAST,
)
_PRESETS = {Preset.OURS: _OURS, Preset.SEED: _SEED}


def plan_of(config: TrainConfig, stage: Stage) -> StagePlan:
    """The settings of a stage: what is given, else the preset's."""
    preset = _PRESETS[config.preset]
    # As the report has it, `midend` trains a model of its own: one that has settled on an answer explores no other.
    otherwise = Baseline.START if stage is Stage.FRONTEND else preset.baseline  # correctness alone is rewarded there
    return StagePlan(
        stage=stage,
        reward=_given(config.reward, _REWARDS[config.preset, stage]),
        generations=_given(config.generations, preset.generations),
        loss=_given(config.loss, preset.loss),
        advantage=_given(config.advantage, preset.advantage),
        beta=_given(config.beta, preset.beta),
        learning_rate=_given(config.learning_rate, preset.learning_rate),
        prompt_tokens=_given(config.prompt_tokens, preset.prompt_tokens),
        completion_tokens=_given(config.completion_tokens, preset.completion_tokens),
        baseline=_given(config.baseline, otherwise),
        begin_with=_given(config.begin_with, BeginWith.WARMUP if stage is Stage.MIDEND else preset.begin_with),
    )


def step_seed(config: TrainConfig, step: int, turn: int = 0) -> int:
    """The seed of what a turn of a step samples: the same whatever ran before it, so that a stage can resume."""
    return (turn * 1_000_003 + config.seed) * 1_000_003 + step


def _given(value: Value | None, otherwise: Value) -> Value:
    return otherwise if value is None else value
