"""A stage of GRPO with TRL's trainer. Needs the extra `train`.

`KernelTrainer` adds four things to `GRPOTrainer`:

1. It stores completions before it uses them and reads them back after a kill. The step alone seeds its sampling.
2. Its rewards come from the judge, by way of the store.
3. With leave-one-out, it multiplies TRL's advantages by K / (K - 1), K being the completions of a group that have a
   reward.
4. With a curriculum, it asks the prompts that `curriculum` chooses instead of those that TRL drew.

It overrides two private methods of TRL, whose version is therefore pinned.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from kernelblaster.config.training import Advantage, Generator, TrainConfig
from kernelblaster.errors import UsageError
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.curriculum import choose
from kernelblaster.training.judging import Completion, Scorer, judge_step
from kernelblaster.training.metrics import metrics_of
from kernelblaster.training.policy import COMPLETE, Policy, prompt_ids
from kernelblaster.training.rollouts import Generation, Rollout, RolloutStore, digest_of_tokens
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import StagePlan, step_seed

CHECKPOINT = "checkpoint-"
_LOGGED = ("valid_rate", "build_rate", "correct_rate", "hack_rate", "truncated_rate", "informative_groups", "geomean")
"""Fields of `Metrics` that TRL logs."""
_SCALES = {Advantage.SPREAD: "group", Advantage.BATCH: "batch"}

OnProgress = Callable[[str, int], None]
"""Called with an event of a stage and its step, to show progress; tests end the process there."""


@dataclass(frozen=True)
class StageRun:
    """What one stage is given.

    Attributes:
        config: settings of the training.
        plan: of the stage.
        directory: its checkpoints and logs.
        scorer: judges completions.
        store: what was generated and judged before.
        on_progress: told of `generating`, `generated`, `judged`, `updated` and `saved`.
    """

    config: TrainConfig
    plan: StagePlan
    directory: Path
    scorer: Scorer
    store: RolloutStore
    on_progress: OnProgress = lambda name, step: None


def train(policy: Policy, rows: Sequence[PromptRow], run: StageRun) -> tuple[list[PromptRow], int]:
    """Train a stage from its last complete checkpoint, if there is one, until its updates, time or judging are up.

    Returns the rows that were used, and the updates made in all.

    Raises UsageError when no prompt fits, MachineError when the machine fails too often.
    """
    used = fitting(policy.tokenizer, rows, run.plan.prompt_tokens)
    if not used:
        raise UsageError(
            f"none of {len(rows)} prompts has {run.plan.prompt_tokens} tokens or less",
            hint="raise train.prompt_tokens, or make shorter prompts: `train data --form short`",
        )
    trainer = KernelTrainer(policy, used, run)
    trainer.train(resume_from_checkpoint=last_checkpoint(run.directory))
    return used, trainer.state.global_step


def fitting(tokenizer: Any, rows: Sequence[PromptRow], most: int) -> list[PromptRow]:
    """Rows whose prompt has at most so many tokens: TRL cuts none."""
    return [row for row in rows if len(prompt_ids(tokenizer, row)) <= most]


def last_checkpoint(directory: Path) -> str | None:
    """The newest checkpoint that was written whole; what a kill left of others is removed."""
    whole = []
    for path in directory.glob(f"{CHECKPOINT}*"):
        if (path / COMPLETE).is_file():
            whole.append((int(path.name.removeprefix(CHECKPOINT)), path))
        else:
            shutil.rmtree(path)
    return str(max(whole)[1]) if whole else None


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
        self._scored: list[Rollout] = []
        self._began = time.monotonic()
        super().__init__(
            model=policy.model,
            reward_funcs=[self.kernel_reward],
            args=_arguments(run),
            train_dataset=Dataset.from_list([_sample(row) for row in rows]),
            processing_class=policy.tokenizer,
            callbacks=[_StageCallback(run, self._began)],
        )
        self.remove_callback(PrinterCallback)

    def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **named: Any) -> Any:
        """Completions of a step: the stored ones, else new ones, stored before they are used."""
        step, asked = self.state.global_step, digest_of_tokens(prompt_ids)
        found = self._run.store.generation(step, asked)
        if found is None:
            self._run.on_progress("generating", step)
            # Forked, so that a step that found its completions leaves the same generator behind.
            with torch.random.fork_rng():
                torch.manual_seed(step_seed(self._run.config, step))
                completions, logprobs = super()._generate_single_turn(prompt_ids, *rest, **named)
            found = Generation(step=step, prompts=asked, completions=completions, logprobs=logprobs)
            self._run.store.keep_generation(found)
        self._run.on_progress("generated", step)
        return found.completions, found.logprobs

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(self._asked(inputs) if self._run.config.curriculum else inputs)
        if self._run.plan.advantage is Advantage.LEAVE_ONE_OUT:
            factors = leave_one_out_factors([one.reward for one in self._scored], self._run.plan.generations)
            output["advantages"] = output["advantages"] * torch.tensor(factors, device=output["advantages"].device)
        return output

    def _asked(self, inputs: Any) -> list[dict[str, Any]]:
        """The samples of a step's groups by the curriculum, in the place of as many that TRL drew."""
        run, step = self._run, self.state.global_step
        k = run.plan.generations
        chosen = choose(list(self._rows), run.store.rollouts, step=step, groups=len(inputs) // k, seed=run.config.seed)
        return [_sample(self._rows[digest]) for digest in chosen for _ in range(k)]

    def kernel_reward(
        self, prompts: Any, completions: Any, completion_ids: Any, digest: Any, log_metric: Any, **_: Any
    ) -> list[float | None]:
        """Rewards of a step, each stored before it is told. TRL logs them under this name."""
        step, run = self.state.global_step, self._run
        written = [
            Completion.of_tokens(self._rows[row], completion[0]["content"], ids, self.eos_token_ids)
            for row, completion, ids in zip(digest, completions, completion_ids, strict=True)
        ]
        self._scored = judge_step(step, written, run.plan.generations, run.scorer, run.store)
        run.on_progress("judged", step)
        _log(log_metric, self._scored)
        return [one.reward for one in self._scored]


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


class _StageCallback(TrainerCallback):
    """Marks checkpoints that are whole, tells where the stage is, and ends it when its time or its judging is up."""

    def __init__(self, run: StageRun, began: float) -> None:
        self._run = run
        self._began = began

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        config = self._run.config
        self._run.on_progress("updated", state.global_step)
        minutes = (time.monotonic() - self._began) / 60
        if config.minutes is not None and minutes >= config.minutes:
            control.should_training_stop = control.should_save = True
        if config.max_judged is not None and self._run.scorer.judge.judged >= config.max_judged:
            control.should_training_stop = control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        checkpoint = self._run.directory / f"{CHECKPOINT}{state.global_step}"
        self._run.on_progress("saving", state.global_step)
        write_atomically(checkpoint / COMPLETE, "")
        self._run.on_progress("saved", state.global_step)
        return control


def _log(log_metric: Callable[[str, float], None], scored: Sequence[Rollout]) -> None:
    figures = metrics_of(scored)
    for name in _LOGGED:
        value = getattr(figures, name)
        if value is not None:
            log_metric(f"kernels/{name}", value)
    for p, share in figures.fast.items():
        log_metric(f"kernels/fast_{p}", share)


def _sample(row: PromptRow) -> dict[str, Any]:
    return {"prompt": [message.model_dump() for message in row.prompt], "digest": row.digest}


def _arguments(run: StageRun) -> Any:
    config, plan = run.config, run.plan
    on_gpu = torch.cuda.is_available()
    vllm = {Generator.VLLM_COLOCATE: "colocate", Generator.VLLM_SERVER: "server"}.get(config.generator)
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(run.directory / "tensorboard"))
    return GRPOConfig(
        output_dir=str(run.directory),
        max_steps=config.steps,
        per_device_train_batch_size=plan.generations,
        gradient_accumulation_steps=config.groups,
        num_generations=plan.generations,
        max_completion_length=plan.completion_tokens,
        temperature=config.temperature,
        learning_rate=plan.learning_rate,
        lr_scheduler_type="constant",
        beta=plan.beta,
        loss_type=str(plan.loss),
        scale_rewards=_SCALES.get(plan.advantage, "none"),
        use_vllm=vllm is not None,
        **({"vllm_mode": vllm} if vllm else {}),
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


def _has_tensorboard() -> bool:
    from importlib.util import find_spec

    return find_spec("tensorboard") is not None
