"""Settings of training a model to write kernels. The preset (`training.stages`) decides those that are not given."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import Field

from kernelblaster.config.section import Section


class Preset(StrEnum):
    """Values for what is not given."""

    OURS = "ours"
    SEED = "seed"


class Loss(StrEnum):
    """How token losses are summed, by TRL's names."""

    GRPO = "grpo"
    DR_GRPO = "dr_grpo"
    DAPO = "dapo"


class Advantage(StrEnum):
    """What a reward is compared with."""

    MEAN = "mean"
    """The mean of its group."""
    LEAVE_ONE_OUT = "leave_one_out"
    """The mean of the others of its group."""
    SPREAD = "spread"
    """The mean of its group, divided by the group's spread."""
    BATCH = "batch"
    """The mean of its group, divided by the spread of the whole step."""


class Generator(StrEnum):
    """What writes completions."""

    TRANSFORMERS = "transformers"
    VLLM_COLOCATE = "vllm_colocate"
    VLLM_SERVER = "vllm_server"


class Baseline(StrEnum):
    """What speed-ups are against."""

    START = "start"
    """The problem's start."""
    PARENT = "parent"
    """The kernel that the prompt shows; the problem's start where it shows none."""
    PYTORCH = "pytorch"
    """PyTorch, eager, as it was timed on this GPU; none where times are modelled."""


class BeginWith(StrEnum):
    """Whose weights a stage after `frontend` begins with."""

    LAST = "last"
    """Those of the last stage before it."""
    WARMUP = "warmup"
    """Those of the warm-up, as `frontend` does: each stage trains a model of its own."""


class TurnCredit(StrEnum):
    """What a turn is rewarded for where a kernel is answered in several."""

    RETURNS = "returns"
    """Its own reward and, discounted, those of the turns after it: dialogues are held within a step."""
    IMMEDIATE = "immediate"
    """Its own reward: the next turn is a prompt of a later step."""


class TrainConfig(Section):
    """How a model is trained to write kernels: `kernelblaster train`."""

    preset: Preset = Preset.OURS
    """What holds for settings that are not given: ours, or seed for the values of the report that this follows."""
    model: Path | None = None
    """Directory of the base model, as transformers loads it."""
    begin_with: BeginWith | None = None
    """Whose weights a stage after frontend begins with: warmup (midend) or last, of the stages before it (backend)."""
    steps: int = Field(100, ge=1)
    """Updates of a stage."""
    groups: int = Field(1, ge=1)
    """Prompts per update; each gets a group of completions."""
    curriculum: bool = False
    """Prompts whose groups of rewards differ are asked more often; else all equally often."""
    turns: int = Field(1, ge=1, le=16)
    """Times that a kernel may be answered: after each but the last, the next prompt holds what the judge found."""
    turn_credit: TurnCredit = TurnCredit.RETURNS
    """returns or immediate: what a turn is rewarded for, beside its own reward."""
    gamma: float = Field(0.4, ge=0, le=1, allow_inf_nan=False)
    """Discount of the rewards of later turns."""
    feedback_characters: int = Field(3000, ge=1)
    """Of what the judge found, in the prompt of a next turn, at most."""
    generations: int | None = Field(None, ge=2)
    """Completions per prompt (K)."""
    reward: str | None = None
    """Reward scheme of the stage."""
    baseline: Baseline | None = None
    """What speed-ups are against: start, parent (the kernel that the prompt shows) or pytorch (eager)."""
    pytorch_times: Path | None = None
    """PyTorch's times on this GPU, as `kernelblaster problems baseline` writes them; those that ship if none is
    named."""
    loss: Loss | None = None
    """grpo, dr_grpo or dapo."""
    advantage: Advantage | None = None
    """mean, leave_one_out, spread or batch."""
    beta: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Weight of the divergence from the policy at the start of the stage."""
    learning_rate: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Of the stages after the warm-up."""
    warmup_learning_rate: float = Field(1e-4, gt=0, allow_inf_nan=False)
    """Of the warm-up on judged replies (`train sft`)."""
    temperature: float = Field(1.0, gt=0, allow_inf_nan=False)
    """Of sampling."""
    prompt_tokens: int | None = Field(None, ge=1)
    """Longer prompts are left out, and counted."""
    completion_tokens: int | None = Field(None, ge=1)
    """Tokens of one completion at most."""
    micro_batch: int | None = Field(None, ge=1)
    """Completions that an update goes through at once, at most: fewer take less memory and more time, and change
    nothing else. Those of a group in the stages and four in the warm-up, if none is given."""
    lora_rank: int = Field(16, ge=0)
    """Of the adapter; 0 trains all weights, in float32."""
    lora_alpha: int = Field(32, ge=1)
    """Scale of the adapter."""
    lora_dropout: float = Field(0.05, ge=0, lt=1)
    """Of the adapter's inputs."""
    checkpoint_steps: int = Field(1, ge=1)
    """Updates between checkpoints; after a kill the updates since the last one are made again, from stored
    completions and rewards."""
    generator: Generator = Generator.TRANSFORMERS
    """transformers, vllm_colocate or vllm_server."""
    vllm_server: str = "http://127.0.0.1:8001"
    """Address of the server that generates, where the generator is vllm_server."""
    judge: str | None = None
    """Address of a judge on another GPU or machine, which `kernelblaster env serve --judge` starts, such as
    http://127.0.0.1:8000; completions are judged in this process if none is named."""
    max_judged: int | None = Field(None, ge=1)
    """Candidates that one start of a stage may have judged; the same command again continues."""
    minutes: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Minutes after which one start of a stage ends; the same command again continues."""
    judge_minutes: float = Field(30, gt=0, allow_inf_nan=False)
    """Minutes after which no completion of a step begins to be judged: those that wait get no reward."""
    samples: int = Field(8, ge=1)
    """Completions per problem in `train eval`."""
    winner_pairs: int = Field(5, ge=0)
    """Pairs of fresh processes in which `train eval` measures the fastest kernel of each problem again, with sanitizers
    on it; one where times are modelled, 0 for none of this."""
    seed: int = 0
    """Of order, sampling and initial adapters; input values of the judge stay secret."""
