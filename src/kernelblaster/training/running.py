"""Stages one after another: what each begins with, what it leaves, and when it is done. Needs the extra `train`.

The same call again continues: a stage that made all its updates is left alone; one that was killed, or that ended for
want of time or of judging, goes on from its last checkpoint with what it had generated and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from kernelblaster.config.training import Baseline, BeginWith, TrainConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.problems.tags import Split
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.records import differing_fields
from kernelblaster.training.arms import BASE, FIGURES_FILE, Arm, ArmFigures, differences_of, estimate, figures_of
from kernelblaster.training.checkpoints import telling_a_full_disk
from kernelblaster.training.comparing import eager_times
from kernelblaster.training.dialogues import OnProgress
from kernelblaster.training.exporting import SFT
from kernelblaster.training.fitting import fitting_prompts, fitting_replies
from kernelblaster.training.grpo import OnStep, StageRun, train
from kernelblaster.training.judging import Scorer, StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import metrics_of
from kernelblaster.training.phase_meter import PhaseMeter
from kernelblaster.training.phases import PhaseCost
from kernelblaster.training.policy import (
    Policy,
    is_complete,
    load_policy,
    require_generator,
    require_model,
    save_policy,
)
from kernelblaster.training.rollouts import (
    ROLLOUTS,
    Rollout,
    RolloutHeader,
    RolloutStore,
    read_header,
    read_rollouts,
)
from kernelblaster.training.rows import PromptRow, SftRow, read_rows
from kernelblaster.training.sampling import sample
from kernelblaster.training.serving import ServedModel
from kernelblaster.training.stage_records import (
    StageRecord,
    digest_of_model,
    read_record,
    record_of,
    require_same,
    write_record,
)
from kernelblaster.training.stages import Stage, StagePlan, plan_of
from kernelblaster.training.warmup import warm_up
from kernelblaster.training.winners import logarithms, measure_winners


def run_warmup(layout: TrainingLayout, config: TrainConfig, on_progress: OnProgress | None = None) -> StageRecord:
    """Train on the judged replies of `sft.jsonl`. Raises UsageError."""
    path = layout.data / SFT
    rows = read_rows(path, SftRow)
    _refuse_held_out([(row.problem, row.split) for row in rows])
    require_model(config)
    record = record_of("sft", config, path, rows=len(rows), left_out=0)
    done = _finished(layout, layout.warmup, record)
    if done is not None:
        return done
    watch = _MeasuredProgress(layout.warmup, read_record(layout.warmup) or record, on_progress)
    policy = load_policy(config, None)
    plan = plan_of(config, Stage.FRONTEND)
    used = fitting_replies(policy, rows, plan)
    warm_up(policy, used, config, plan.prompt_tokens + plan.completion_tokens, layout.warmup, watch)
    kept = {"rows": len(used), "left_out": len(rows) - len(used)}
    update = {**kept, "updates": config.steps, "phases": watch.phases}
    return _leave(layout, layout.warmup, policy, record.model_copy(update=update))


def run_stage(
    layout: TrainingLayout,
    config: TrainConfig,
    stage: Stage,
    judge: StoredJudge,
    on_progress: OnProgress | None = None,
    on_step: OnStep | None = None,
) -> StageRecord:
    """Train a stage on its prompts. Raises UsageError, MachineError."""
    directory, data = layout.stage(stage), layout.prompts(stage)
    rows = [row for row in read_rows(data, PromptRow, options=f"--stages {stage}") if row.split == Split.TRAIN]
    if not rows:
        raise UsageError(f"{data} holds no problem to learn from", hint="`train data` with others")
    require_model(config)
    require_generator(config)
    plan = plan_of(config, stage)
    begun = read_record(directory)
    before = _before(layout, plan) if begun is None else begun.begins_with
    record = record_of(
        stage, config, data, rows=len(rows), left_out=0, plan=plan, conditions=judge.shared.conditions,
        begins_with=before,
    )  # fmt: skip
    done = _finished(layout, directory, record)
    if done is not None:
        return done
    _require_judged_as_asked(data, rows, judge)
    watch = _MeasuredProgress(directory, begun or record, on_progress)
    policy = load_policy(config, _weights_before(layout, directory, before))
    used = fitting_prompts(policy, rows, plan.prompt_tokens)
    record = record.model_copy(update={"rows": len(used), "left_out": len(rows) - len(used)})
    run = StageRun(
        config=config,
        plan=plan,
        directory=directory,
        scorer=_scorer(judge, config, plan, rows),
        store=RolloutStore(directory, _header(judge, config, plan)),
        on_progress=watch,
        on_step=on_step or (lambda step, figures: None),
    )
    if begun is None:
        write_record(directory, record)
    updates = train(policy, used, run)
    update = {"updates": updates, "metrics": metrics_of(run.store.rollouts), "phases": watch.phases}
    return _leave(layout, directory, policy, record.model_copy(update=update))


def run_evaluation(
    layout: TrainingLayout,
    config: TrainConfig,
    judge: StoredJudge,
    arm: Arm,
    against: str = "",
    on_progress: OnProgress | None = None,
) -> ArmFigures:
    """Sample `config.samples` completions for each prompt of a split, one if greedy, and judge them.

    Args:
        layout: of the training.
        config: its settings.
        judge: whose inputs no completion has seen.
        arm: what is sampled, and on what.
        against: weights that were sampled on the same before; empty for no comparison.
        on_progress: told `generating`, `generated` and `judged`, and the place of the prompt.

    Raises UsageError, MachineError.
    """
    plan = plan_of(config, arm.stage)
    require_model(config)
    header = _header(judge, config, plan).model_copy(
        update={"sampling": _sampling(config, plan), "weights": _weights_of(layout, config, arm.weights)}
    )
    others = _rollouts_of(layout, replace(arm, weights=against), header) if against else []
    asked = layout.prompts(arm.stage)
    rows = [row for row in read_rows(asked, PromptRow, options=f"--stages {arm.stage}") if row.split == arm.split]
    if not rows:
        raise UsageError(
            f"{asked} holds no prompt of split {arm.split}",
            hint="name problems of it with `train data --problems`, or take another --split",
        )
    _require_judged_as_asked(asked, rows, judge)
    weights = None if arm.weights == BASE else layout.adapter(layout.root / arm.weights)
    directory = layout.evaluation(arm.name)
    store = RolloutStore(directory, header)
    policy = load_policy(config, weights)
    fit = fitting_prompts(policy, rows, plan.prompt_tokens)
    scorer = _scorer(judge, config, plan, fit)
    sample(
        policy, fit, plan, config, scorer, store, greedy=arm.greedy,
        on_progress=on_progress or (lambda name, step: None),
    )  # fmt: skip
    found = figures_of(store.rollouts)
    if config.winner_pairs:
        winners = measure_winners(store.rollouts, fit, scorer, directory, config.winner_pairs)
        again = estimate(logarithms(winners, list(found.problems)))
        found = found.model_copy(update={"winners": winners, "estimates": found.estimates | {"log_winner": again}})
    if others:
        differences = differences_of(store.rollouts, others)
        found = found.model_copy(update={"against": against, "differences": differences})
    write_atomically(directory / FIGURES_FILE, found.model_dump_json(indent=1))
    return found


def open_served(layout: TrainingLayout, config: TrainConfig, name: str, batch: int) -> ServedModel:
    """Trained weights, or the base model, that answer requests. Raises UsageError."""
    require_model(config)
    _weights_of(layout, config, name)
    weights = None if name == BASE else layout.adapter(layout.root / name)
    tokens = plan_of(config, Stage(name) if name in set(Stage) else Stage.FRONTEND).completion_tokens
    return ServedModel(load_policy(config, weights), name, tokens, batch)


def _rollouts_of(layout: TrainingLayout, arm: Arm, header: RolloutHeader) -> list[Rollout]:
    """What an arm was sampled to, by the same rules. Raises UsageError."""
    directory = layout.evaluation(arm.name)
    found = read_header(directory / ROLLOUTS)
    if found is None:
        raise UsageError(
            f"{arm.weights} was not sampled on these prompts", hint=f"run `train eval --weights {arm.weights}` first"
        )
    alike = found.model_copy(update={"weights": header.weights})
    if alike != header:
        raise UsageError(
            f"{directory / ROLLOUTS} was sampled or rewarded by other rules: {differing_fields(alike, header)}",
            hint="evaluate both with the same device, size, precision, reward and sampling",
        )
    return read_rollouts(directory)


def _weights_of(layout: TrainingLayout, config: TrainConfig, name: str) -> str:
    """What tells weights that were sampled from those of a later training. Raises UsageError where there are none."""
    if name == BASE:
        return digest_of_model(config.model)[:16]
    directory = layout.root / name
    record = read_record(directory) if is_complete(layout.adapter(directory)) else None
    if record is None:
        raise UsageError(
            f"there is no trained '{name}' in {layout.root}",
            hint=f"choose from {', '.join((BASE, layout.warmup.name, *Stage))}, and train it first",
        )
    return record.digest


def _sampling(config: TrainConfig, plan: StagePlan) -> dict[str, float]:
    return {
        "samples": config.samples,
        "temperature": config.temperature,
        "prompt_tokens": plan.prompt_tokens,
        "completion_tokens": plan.completion_tokens,
        "seed": config.seed,
    }


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
        deadline_s=60 * config.judge_minutes,
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


def _before(layout: TrainingLayout, plan: StagePlan) -> str:
    """What a stage begins with that is complete, the warm-up or the last stage before it; empty for the base model."""
    stages = takewhile(lambda one: one is not plan.stage, Stage) if plan.begin_with is BeginWith.LAST else ()
    earlier = [layout.warmup, *map(layout.stage, stages)]
    return next((one.name for one in reversed(earlier) if is_complete(layout.adapter(one))), "")


def _weights_before(layout: TrainingLayout, directory: Path, before: str) -> Path | None:
    """Those that a stage begins with; None for the base model. Raises UsageError where a stage lost them."""
    if not before:
        return None
    weights = layout.adapter(layout.root / before)
    if not is_complete(weights):
        raise UsageError(
            f"{directory} began with the weights of '{before}', which are not in {weights}",
            hint=f"restore them, or remove {directory} to train the stage again",
        )
    return weights


def _require_judged_as_asked(path: Path, rows: Sequence[PromptRow], judge: StoredJudge) -> None:
    """Raise UsageError where prompts tell another precision or size than kernels would be judged at."""
    conditions = judge.shared.conditions
    judged = (conditions["precision"], conditions["workload"])
    other = next((one for row in rows if (one := (row.precision, row.size)) != judged), None)
    if other is not None:
        raise UsageError(
            f"{path} asks for {other[0]} at size {other[1]}, and kernels would be judged in {judged[0]} at {judged[1]}",
            hint=f"give --precision {other[0]} --size {other[1]}, or make the data again with `train data`",
        )


class _MeasuredProgress:
    """Measures the phases of a stage, and keeps what they took after each update.

    Args:
        directory: of the stage.
        record: of its earlier starts.
        on_progress: told each moment.
    """

    def __init__(self, directory: Path, record: StageRecord, on_progress: OnProgress | None) -> None:
        self._directory = directory
        self._record = record
        self._on_progress = on_progress
        self._meter = PhaseMeter(record.phases)

    @property
    def phases(self) -> dict[str, PhaseCost]:
        """What they took so far."""
        return self._meter.phases

    def __call__(self, moment: str, step: int) -> None:
        self._meter(moment)
        if moment in ("updated", "saved"):
            write_record(self._directory, self._record.model_copy(update={"phases": self.phases}))
        if self._on_progress is not None:
            self._on_progress(moment, step)


def _finished(layout: TrainingLayout, directory: Path, asked: StageRecord) -> StageRecord | None:
    """The record of a stage that has made all the updates that are asked for.

    Raises UsageError where it was begun with other settings.
    """
    found = read_record(directory)
    if found is None:
        return None
    require_same(directory, found, asked)
    ended = is_complete(layout.adapter(directory)) and found.updates >= asked.config.steps
    return found if ended else None


def _leave(layout: TrainingLayout, directory: Path, policy: Policy, record: StageRecord) -> StageRecord:
    """Weights first: a record never tells of updates that they have not had."""
    with telling_a_full_disk(directory):
        save_policy(policy, layout.adapter(directory))
    write_record(directory, record)
    return record


def _refuse_held_out(rows: Sequence[tuple[str, str]]) -> None:
    held = sorted({problem for problem, split in rows if split != Split.TRAIN})
    if held:
        raise UsageError(f"{', '.join(held[:5])} must not be learned from", hint="make the data with `train data`")
