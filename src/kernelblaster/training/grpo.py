"""A stage of GRPO with TRL's trainer. Needs the extra `train`.

`KernelTrainer` adds to `GRPOTrainer`:

1. Completions are stored before they are used and read back after a kill. Step and turn alone seed their sampling.
2. Rewards come from the judge, by way of the store.
3. The prompts of a step are chosen here (`asking`), in the place of those that TRL draws.
4. Where dialogues are held within a step, each of their turns is a sample of its own, whose reward is its return. A
   turn that a dialogue did not take is a sample without tokens in the loss, and without a reward.
5. With leave-one-out, TRL's advantages are multiplied by K / (K - 1), K being the completions of a group that have a
   reward: in later turns fewer than in the first.

It overrides one private method of TRL and calls another, so that TRL's version is pinned.
"""

from __future__ import annotations

import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from kernelblaster.config.training import Advantage, Generator, TrainConfig
from kernelblaster.training.asking import asked_at, turns_within_a_step
from kernelblaster.training.checkpoints import MarksCheckpoints, last_checkpoint, telling_a_full_disk
from kernelblaster.training.dialogues import Dialogues, DialogueTurn, OnProgress, Written, next_turns_of
from kernelblaster.training.fitting import fits
from kernelblaster.training.judging import Scorer
from kernelblaster.training.metrics import Metrics, metrics_of
from kernelblaster.training.policy import Policy, micro_batch
from kernelblaster.training.rollouts import Logprobs, RolloutStore
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import StagePlan, step_seed
from kernelblaster.training.turns import Asked, discounted_returns

_LOGGED = (
    "valid_rate", "build_rate", "correct_rate", "solved_rate", "hack_rate", "truncated_rate", "informative_groups",
    "geomean",
)  # fmt: skip
"""Fields of `Metrics` that TRL logs."""
_TRL = "trl.trainer.grpo_trainer"
OnStep = Callable[[int, Metrics], None]
_SCALES = {Advantage.SPREAD: "group", Advantage.BATCH: "batch"}


@dataclass(frozen=True)
class StageRun:
    """What one stage is given.

    Attributes:
        config: settings of the training.
        plan: of the stage.
        directory: its checkpoints and logs.
        scorer: judges completions.
        store: what was generated and judged before.
        on_step: told the figures of a step's completions when all are judged.
        on_progress: told of `generating`, `generated`, `judged`, `updated` and `saved`.
    """

    config: TrainConfig
    plan: StagePlan
    directory: Path
    scorer: Scorer
    store: RolloutStore
    on_progress: OnProgress = lambda name, step: None
    on_step: OnStep = lambda step, figures: None


def train(policy: Policy, rows: Sequence[PromptRow], run: StageRun) -> int:
    """Train a stage from its last complete checkpoint, if there is one, until its updates, time or judging are up.

    Args:
        policy: trained in place.
        rows: prompts that fit; one at least.
        run: of the stage.

    Returns the updates made in all. Raises MachineError when the machine fails too often, OSError.
    """
    trainer = KernelTrainer(policy, rows, run)
    with telling_a_full_disk(run.directory):
        trainer.train(resume_from_checkpoint=last_checkpoint(run.directory))
    updates: int = trainer.state.global_step
    return updates


class KernelTrainer(GRPOTrainer):
    """GRPO over stored completions and judged rewards.

    Args:
        policy: trained in place.
        rows: prompts that fit.
        run: of the stage.
    """

    def __init__(self, policy: Policy, rows: Sequence[PromptRow], run: StageRun) -> None:
        self._run = run
        self._rows = {row.digest: row for row in rows}
        self._turns = turns_within_a_step(run.config)
        self._asked: list[Asked] = []
        self._samples: list[_Sample | None] = []
        self._next_turns = next_turns_of(run.scorer, run.config, partial(fits, policy, run.plan.prompt_tokens))
        # What TRL draws is not asked: it only must have enough of it.
        drawn = [_sample(row) for row in rows] * (1 + run.config.groups * self._turns // len(rows))
        logging.getLogger(_TRL).addFilter(_is_told)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="You are using 'rollout_func'")  # TRL is pinned
            super().__init__(
                model=policy.model,
                reward_funcs=[self.kernel_reward],
                args=_arguments(run, self._turns),
                train_dataset=Dataset.from_list(drawn),
                processing_class=policy.tokenizer,
                callbacks=[MarksCheckpoints(run.directory, run.on_progress), _EndsInTime(run, time.monotonic())],
                rollout_func=self._hold,
            )
        self.remove_callback(PrinterCallback)
        self._dialogues = Dialogues(
            tokenizer=policy.tokenizer,
            ends=self.eos_token_ids,
            group=run.plan.generations,
            turns=self._turns,
            next_turns=self._next_turns,
            scorer=run.scorer,
            store=run.store,
            on_progress=run.on_progress,
        )

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        run, k = self._run, self._run.plan.generations
        asked = asked_at(self.state.global_step, self._rows, run.config, run.store, self._next_turns)
        self._asked = [one for one in asked for _ in range(k)]
        output = super()._generate_and_score_completions(
            [_sample(one.base) for one in asked for _ in range(k * self._turns)]
        )
        if run.plan.advantage is Advantage.LEAVE_ONE_OUT:
            factors = leave_one_out_factors([_value(one) for one in self._samples], k)
            output["advantages"] = output["advantages"] * torch.tensor(factors, device=output["advantages"].device)
        return output

    def _hold(self, prompts: Any, trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: dialogues on what is asked, with a row for each turn that one may take."""
        held = self._dialogues.hold(self.state.global_step, self._asked, self._write)
        self._samples = _in_rows(held, self._run.plan.generations, self._turns, self._run.config.gamma)
        turns = [None if one is None else one.turn for one in self._samples]
        unused = [int(self.eos_token_ids[0])]
        return {
            "prompt_ids": [unused if turn is None else turn.prompt for turn in turns],
            "completion_ids": [unused if turn is None else turn.completion for turn in turns],
            "logprobs": [[0.0] if turn is None else _logprobs(turn) for turn in turns] if self.use_vllm else None,
            "env_mask": [[0] if turn is None else [1] * len(turn.completion) for turn in turns],
        }

    def _write(self, prompts: list[list[int]], turn: int) -> Written:
        """Have prompts answered by the generator that is configured."""
        # Prompts of a group are equal in the first turn alone; a server of vLLM is asked equal ones once.
        repeated = self._run.plan.generations if turn == 0 else 1
        # Forked, so that a step that found its completions leaves the same generator behind.
        with torch.random.fork_rng():
            torch.manual_seed(step_seed(self._run.config, self.state.global_step, turn))
            completions, logprobs = self._generate_single_turn(prompts, None, {}, repeated)
        return Written(completions, None if logprobs is None else [_known(one) for one in logprobs])

    def kernel_reward(self, prompts: Any, completions: Any, log_metric: Any, **_: Any) -> list[float | None]:
        """The return of each row; None for a turn that was not taken. TRL logs them under this name."""
        figures = metrics_of(one.turn.rollout for one in self._samples if one is not None)
        self._run.on_step(self.state.global_step, figures)
        _log(log_metric, figures)
        return [_value(one) for one in self._samples]


@dataclass(frozen=True)
class _Sample:
    """A turn with its return."""

    turn: DialogueTurn
    value: float | None


def _known(logprobs: Sequence[float | None]) -> Logprobs:
    return [one if one is not None and math.isfinite(one) else None for one in logprobs]


def _logprobs(turn: DialogueTurn) -> list[float]:
    """As TRL takes them: it corrects nothing where one is NaN. None are known of what transformers wrote."""
    known = turn.logprobs or [None] * len(turn.completion)
    return [math.nan if one is None else one for one in known]


def _value(sample: _Sample | None) -> float | None:
    return None if sample is None else sample.value


def _in_rows(held: Sequence[Sequence[DialogueTurn]], group: int, turns: int, gamma: float) -> list[_Sample | None]:
    """A row per group, turn and dialogue of the group: TRL compares `group` rows that follow each other."""
    dialogues = []
    for one in held:
        values = discounted_returns([turn.rollout.reward for turn in one], turns, gamma)
        taken: list[_Sample | None] = [_Sample(turn, value) for turn, value in zip(one, values, strict=True)]
        dialogues.append(taken + [None] * (turns - len(taken)))
    groups = (dialogues[first : first + group] for first in range(0, len(dialogues), group))
    return [sample for rows in groups for turn in zip(*rows, strict=True) for sample in turn]


def leave_one_out_factors(rewards: Sequence[float | None], generations: int) -> list[float]:
    """K / (K - 1) per completion, K its group's completions that have a reward; 1 where that is undefined.

    r_i minus the mean of the others is K / (K - 1) times r_i minus the mean of all (RLOO, arXiv 2402.14740).
    """
    factors = []
    for start in range(0, len(rewards), generations):
        group = rewards[start : start + generations]
        known = sum(reward is not None for reward in group)
        factors += [known / (known - 1) if known > 1 else 1.0] * len(group)
    return factors


class _EndsInTime(TrainerCallback):
    """Ends a stage when its time or its judging is up."""

    def __init__(self, run: StageRun, began: float) -> None:
        self._run = run
        self._began = began

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        config = self._run.config
        minutes = (time.monotonic() - self._began) / 60
        if config.minutes is not None and minutes >= config.minutes:
            control.should_training_stop = control.should_save = True
        if config.max_judged is not None and self._run.scorer.judge.judged >= config.max_judged:
            control.should_training_stop = control.should_save = True
        return control


def _is_told(record: logging.LogRecord) -> bool:
    """Rows without a reward are no news here, and TRL would print the prompt of one at each step."""
    return "All reward functions returned None" not in record.getMessage()


def _log(log_metric: Callable[[str, float], None], figures: Metrics) -> None:
    for name in _LOGGED:
        value = getattr(figures, name)
        if value is not None:
            log_metric(f"kernels/{name}", value)
    for p, share in figures.fast.items():
        log_metric(f"kernels/fast_{p}", share)


def _sample(row: PromptRow) -> dict[str, Any]:
    return {"prompt": [message.model_dump() for message in row.prompt], "digest": row.digest}


def _arguments(run: StageRun, turns: int) -> Any:
    config, plan = run.config, run.plan
    on_gpu = torch.cuda.is_available()
    samples = config.groups * turns * plan.generations
    at_once = micro_batch(samples, config.micro_batch or plan.generations)
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(run.directory / "tensorboard"))
    return GRPOConfig(
        output_dir=str(run.directory),
        max_steps=config.steps,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=samples // at_once,
        num_generations=plan.generations,
        max_completion_length=plan.completion_tokens,
        temperature=config.temperature,
        learning_rate=plan.learning_rate,
        lr_scheduler_type="constant",
        beta=plan.beta,
        loss_type=str(plan.loss),
        scale_rewards=_SCALES.get(plan.advantage, "none"),
        **_vllm(config, plan),
        seed=config.seed,
        save_strategy="steps",
        save_steps=config.checkpoint_steps,
        save_total_limit=2,
        logging_steps=1,
        report_to=["tensorboard"] if _has_tensorboard() else [],
        disable_tqdm=True,
        use_cpu=not on_gpu,
        bf16=on_gpu,
        gradient_checkpointing=on_gpu,
        dataloader_num_workers=0,
    )


def _vllm(config: TrainConfig, plan: StagePlan) -> dict[str, Any]:
    if config.generator is Generator.TRANSFORMERS:
        return {"use_vllm": False}
    if config.generator is Generator.VLLM_SERVER:
        return {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": config.vllm_server}
    # Without it room is asked for all that the model can read, which is more than there is beside its training.
    return {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "vllm_max_model_length": plan.prompt_tokens + plan.completion_tokens,
    }


def _has_tensorboard() -> bool:
    from importlib.util import find_spec

    return find_spec("tensorboard") is not None
