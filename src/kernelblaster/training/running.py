"""Stages one after another: what each begins with, what it leaves, and when it is done. Needs the extra `train`.

The same call again continues: a stage that made all its updates is left alone; one that was killed, or that ended for
want of time or of judging, goes on from its last checkpoint with what it had generated and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from kernelblaster.config.training import Baseline, BeginWith, TrainConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.problems.tags import Split
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.records import differing_fields
from kernelblaster.training.arms import BASE, Arm, ArmFigures, differences_of, figures_of
from kernelblaster.training.comparing import eager_times
from kernelblaster.training.dialogues import OnProgress
from kernelblaster.training.exporting import SFT
from kernelblaster.training.grpo import OnStep, StageRun, train
from kernelblaster.training.judging import Scorer, StoredJudge
from kernelblaster.training.layout import RECORD, TrainingLayout
from kernelblaster.training.metrics import Metrics, metrics_of
from kernelblaster.training.policy import Policy, fits, is_complete, load_policy, save_policy
from kernelblaster.training.rollouts import (
    ROLLOUTS,
    Rollout,
    RolloutHeader,
    RolloutStore,
    read_header,
    read_rollouts,
)
from kernelblaster.training.rows import PromptRow, SftRow, digest_of_file, read_rows
from kernelblaster.training.sampling import sample
from kernelblaster.training.stages import Stage, StagePlan, plan_of
from kernelblaster.training.warmup import warm_up

_LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")


class StageRecord(BaseModel):
    """`train.json`: what a stage was given and what it came to."""

    format: Literal["kernelblaster-train-2"] = "kernelblaster-train-2"
    stage: str
    updates: int
    """Made so far: fewer than `config.steps` where time or judging ran out."""
    config: TrainConfig
    plan: dict[str, object]
    """Settings that held; empty for the warm-up."""
    conditions: dict[str, str]
    """What its rewards rest on; empty for the warm-up, which judges nothing."""
    versions: dict[str, str]
    data_sha256: str
    begins_with: str
    """The stage whose weights it began with; empty for the base model."""
    rows: int
    left_out: int
    """Rows that were too long."""
    metrics: Metrics | None = None


def run_warmup(layout: TrainingLayout, config: TrainConfig, on_progress: OnProgress | None = None) -> StageRecord:
    """Train on the judged replies of `sft.jsonl`. Raises UsageError."""
    done = _finished(layout, layout.warmup)
    if done is not None:
        return done
    path = layout.data / SFT
    rows = read_rows(path, SftRow)
    _refuse_held_out([(row.problem, row.split) for row in rows])
    policy = load_policy(config, None)
    plan = plan_of(config, Stage.FRONTEND)
    used = warm_up(
        policy,
        rows,
        config,
        plan.prompt_tokens + plan.completion_tokens,
        layout.warmup,
        on_progress or (lambda name, step: None),
    )
    if used == 0:
        raise UsageError(
            f"none of {len(rows)} replies fits", hint="raise train.prompt_tokens or train.completion_tokens"
        )
    record = _record("sft", config, path, updates=config.steps, rows=used, left_out=len(rows) - used)
    return _leave(layout, layout.warmup, policy, record)


def run_stage(
    layout: TrainingLayout,
    config: TrainConfig,
    stage: Stage,
    judge: StoredJudge,
    on_progress: OnProgress | None = None,
    on_step: OnStep | None = None,
) -> StageRecord:
    """Train a stage on its prompts. Raises UsageError, MachineError."""
    directory = layout.stage(stage)
    done = _finished(layout, directory)
    if done is not None and done.updates >= config.steps:
        return done
    rows = [row for row in read_rows(layout.prompts(stage), PromptRow) if row.split == Split.TRAIN]
    if not rows:
        raise UsageError(f"{layout.prompts(stage)} holds no problem to learn from", hint="`train data` with others")
    plan = plan_of(config, stage)
    before, weights = _before(layout, plan)
    policy = load_policy(config, weights)
    run = StageRun(
        config=config,
        plan=plan,
        directory=directory,
        scorer=_scorer(judge, config, plan, rows),
        store=RolloutStore(directory, _header(judge, config, plan)),
        on_progress=on_progress or (lambda name, step: None),
        on_step=on_step or (lambda step, figures: None),
    )
    used, updates = train(policy, rows, run)
    record = _record(
        stage, config, layout.prompts(stage), updates=updates, rows=len(used), left_out=len(rows) - len(used)
    ).model_copy(
        update={
            "plan": asdict(plan),
            "conditions": judge.shared.conditions,
            "begins_with": before,
            "metrics": metrics_of(run.store.rollouts),
        }
    )
    return _leave(layout, directory, policy, record)


def run_evaluation(
    layout: TrainingLayout, config: TrainConfig, judge: StoredJudge, arm: Arm, against: str = ""
) -> ArmFigures:
    """Sample `config.samples` completions for each prompt of a split, one if greedy, and judge them.

    Args:
        layout: of the training.
        config: its settings.
        judge: whose inputs no completion has seen.
        arm: what is sampled, and on what.
        against: weights that were sampled on the same before; empty for no comparison.

    Raises UsageError, MachineError.
    """
    plan = plan_of(config, arm.stage)
    header = _header(judge, config, plan)
    others = _rollouts_of(layout, replace(arm, weights=against), header) if against else []
    rows = [row for row in read_rows(layout.prompts(arm.stage), PromptRow) if row.split == arm.split]
    weights = None if arm.weights == BASE else layout.adapter(layout.root / arm.weights)
    if weights is not None and not is_complete(weights):
        raise UsageError(f"there is no trained {arm.weights} in {layout.root}", hint=f"run `train {arm.weights}` first")
    directory = layout.evaluation(arm.name)
    store = RolloutStore(directory, header)
    policy = load_policy(config, weights)
    fit = [row for row in rows if fits(policy, plan.prompt_tokens, row)]
    if not fit:
        raise UsageError(f"no prompt of {arm.split} fits", hint="raise train.prompt_tokens, or pose other problems")
    sample(policy, fit, plan, config, _scorer(judge, config, plan, fit), store, greedy=arm.greedy)
    found = figures_of(store.rollouts)
    if others:
        differences = differences_of(store.rollouts, others)
        found = found.model_copy(update={"against": against, "differences": differences})
    write_atomically(directory / "eval.json", found.model_dump_json(indent=1))
    return found


def _rollouts_of(layout: TrainingLayout, arm: Arm, header: RolloutHeader) -> list[Rollout]:
    """What an arm was sampled to, by the same rules. Raises UsageError."""
    directory = layout.evaluation(arm.name)
    found = read_header(directory / ROLLOUTS)
    if found is None:
        raise UsageError(
            f"{arm.weights} was not sampled on these prompts", hint=f"run `train eval --weights {arm.weights}` first"
        )
    if found != header:
        raise UsageError(
            f"{directory / ROLLOUTS} holds rewards by other rules: {differing_fields(found, header)}",
            hint="evaluate both with the same device, size, precision and reward",
        )
    return read_rollouts(directory)


def stage_rollouts(layout: TrainingLayout) -> dict[str, Path]:
    """Stages that have judged something -> their directory."""
    return {stage: layout.stage(stage) for stage in Stage if (layout.stage(stage) / ROLLOUTS).exists()}


def _scorer(judge: StoredJudge, config: TrainConfig, plan: StagePlan, rows: Sequence[PromptRow]) -> Scorer:
    """Raises UsageError where PyTorch is the baseline and was not timed."""
    pytorch: dict[str, ModeTime] = {}
    if plan.baseline is Baseline.PYTORCH:
        shared = judge.shared
        problems = [judge.problem(name) for name in dict.fromkeys(row.problem for row in rows)]
        pytorch = eager_times(problems, shared.facts, shared.precision, shared.workload, config.pytorch_times)
    return Scorer(
        judge,
        REWARDS.get(plan.reward)(RewardOptions()),
        plan.baseline,
        threads=plan.generations,
        profile=plan.stage is Stage.BACKEND,
        pytorch=pytorch,
    )


def _header(judge: StoredJudge, config: TrainConfig, plan: StagePlan) -> RolloutHeader:
    return RolloutHeader(
        stage=plan.stage,
        conditions=judge.shared.conditions,
        modelled=judge.shared.facts.kind is DeviceKind.EMULATED,
        reward=plan.reward,
        baseline=plan.baseline,
        turns=config.turns,
        turn_credit=config.turn_credit if config.turns > 1 else "",
    )


def _before(layout: TrainingLayout, plan: StagePlan) -> tuple[str, Path | None]:
    """What a stage begins with that is complete, the warm-up or the last stage before it, and its weights."""
    stages = takewhile(lambda one: one is not plan.stage, Stage) if plan.begin_with is BeginWith.LAST else ()
    earlier = [layout.warmup, *map(layout.stage, stages)]
    for directory in reversed(earlier):
        if is_complete(layout.adapter(directory)):
            return directory.name, layout.adapter(directory)
    return "", None


def _finished(layout: TrainingLayout, directory: Path) -> StageRecord | None:
    """The record of a stage that has ended, with all its updates or before. Raises UsageError."""
    path = directory / RECORD
    if not is_complete(layout.adapter(directory)) or not path.is_file():
        return None
    try:
        return StageRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(
            f"{path} is no record of this version", hint=f"remove {directory} to train the stage again"
        ) from error


def _record(stage: str, config: TrainConfig, data: Path, *, updates: int, rows: int, left_out: int) -> StageRecord:
    return StageRecord(
        stage=stage,
        updates=updates,
        config=config,
        plan={},
        conditions={},
        versions={name: version(name) for name in _LIBRARIES},
        data_sha256=digest_of_file(data),
        begins_with="",
        rows=rows,
        left_out=left_out,
    )


def _leave(layout: TrainingLayout, directory: Path, policy: Policy, record: StageRecord) -> StageRecord:
    """Weights first: a record never tells of updates that they have not had."""
    save_policy(policy, layout.adapter(directory))
    write_atomically(directory / RECORD, record.model_dump_json(indent=1))
    return record


def _refuse_held_out(rows: Sequence[tuple[str, str]]) -> None:
    held = sorted({problem for problem, split in rows if split != Split.TRAIN})
    if held:
        raise UsageError(f"{', '.join(held[:5])} must not be learned from", hint="make the data with `train data`")
