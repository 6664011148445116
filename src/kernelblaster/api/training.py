"""Train a model to write kernels: data sets, supervised warm-up, stages of GRPO, evaluation."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kernelblaster.api.environments import environment_problems
from kernelblaster.api.evaluating import Tell, open_evaluator
from kernelblaster.api.problems import DatasetName
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.remote_judge import RemoteJudge
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir, how_to_install
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.tags import Split
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.runs.choices import timed_workload
from kernelblaster.training.arms import Arm, ArmFigures
from kernelblaster.training.datasets import Card, TrainableReplies
from kernelblaster.training.exporting import export, replies_of
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import speedup
from kernelblaster.training.page import write_page
from kernelblaster.training.prompt_rows import PromptBuilder, parents_of
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rejudging import VERDICTS, judge_again, with_verdicts
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.rows import PromptRow, write_rows
from kernelblaster.training.splits import Splits, make_splits
from kernelblaster.training.stages import Stage

if TYPE_CHECKING:
    from kernelblaster.training.dialogues import OnProgress
    from kernelblaster.training.grpo import OnStep
    from kernelblaster.training.metrics import Metrics
    from kernelblaster.training.stage_records import StageRecord


PAGE_EVERY_S = 15.0
"""Seconds between two pages of a training that goes on."""


@dataclass(frozen=True)
class TrainingData:
    """What `make_training_data` wrote.

    Attributes:
        cards: of the sets to learn from.
        prompts: file -> rows.
    """

    cards: list[Card]
    prompts: dict[str, int]


def shipped_recordings() -> list[Path]:
    """The searches on an H200 that come with the package."""
    return sorted((data_dir() / "recordings").glob("*.jsonl.gz"))


def export_training_data(
    directory: Path,
    sources: Sequence[Path] | None = None,
    *,
    judge: bool = False,
    config: RunConfig | None = None,
    dataset: DatasetName | None = None,
    device: Device | str | None = None,
    on_stage: Tell | None = None,
) -> list[Card]:
    """Write what recordings and runs hold as data sets, each with a card; nothing of held-out problems.

    Args:
        directory: made if it is missing.
        sources: recordings, and directories of runs; the shipped recordings if None.
        judge: judge replies again of which no verdict is known, into `verdicts.jsonl`; called again, it continues.
        config, dataset: whose splits hold, and how replies are judged.
        device, on_stage: see `open_evaluator`.

    Raises UsageError, KnowledgeError; DeviceError, ProblemError where replies are judged.
    """
    _require_directory(directory)
    catalogue = environment_problems(config, dataset=dataset)
    splits = make_splits(catalogue.problems)
    read = shipped_recordings() if sources is None else sources
    if judge:
        learned = TrainableReplies(replies_of(read), splits, known=False)
        with _open_judge(config or RunConfig(), device, on_stage) as shared:
            judge_again(learned.replies, shared, catalogue, directory / VERDICTS)
    return export(read, splits, directory)


def make_training_data(
    directory: Path,
    config: RunConfig | None = None,
    *,
    sources: Sequence[Path] | None = None,
    problems: Sequence[str] = (),
    stages: Sequence[Stage | str] = (Stage.FRONTEND, Stage.MIDEND),
    form: PromptForm | str = PromptForm.FULL,
    language: CandidateLanguage | str = CandidateLanguage.CUDA,
    dataset: DatasetName | None = None,
    device: Device | str | None = None,
    on_stage: Tell | None = None,
) -> TrainingData:
    """Write splits, sets to learn from and the prompts of stages below `directory`.

    Kernels to improve are starts, those of the sources, and, called again after a stage, those that it wrote; each is
    judged here. What it judged is kept: a call that was killed goes on when it is made again.

    Args:
        directory: of the training; made if it is missing.
        config: data set, precision, size and device; the defaults if None.
        sources: recordings, and directories of runs; the shipped recordings if None.
        problems: names of the problems to pose; all if empty.
        stages: whose prompts are written; for `backend` every kernel to improve is profiled.
        form: how much a prompt tells: `full` or `short`.
        language: what replies are to be written in: `cuda` or `triton`. The sets to learn from hold CUDA alone.
        dataset: a data set other than the configured one.
        device, on_stage: see `open_evaluator`.

    Raises UsageError, ProblemError, DeviceError.
    """
    _require_directory(directory)
    config = config or RunConfig()
    wanted = [_named(Stage, stage) for stage in stages]
    told, written_in = _named(PromptForm, form), _named(CandidateLanguage, language)
    layout = TrainingLayout(directory)
    catalogue = environment_problems(config, dataset=dataset)
    posed = [catalogue.find(name) for name in problems] or list(catalogue.problems)
    splits = make_splits(catalogue.problems)
    read = shipped_recordings() if sources is None else sources
    cards, searched = export(read, splits, layout.data), _searched_kernels(read, splits, layout)
    with _open_judge(config, device, on_stage) as shared:
        judge = StoredJudge(shared, catalogue, layout.judged)
        prompts = PromptBuilder(judge, splits, told, written_in)
        written = {stage: _prompt_rows(prompts, posed, layout, stage, searched) for stage in wanted}
    for stage, rows in written.items():
        write_rows(layout.prompts(stage), rows)
    return TrainingData(cards, {layout.prompts(stage).name: len(rows) for stage, rows in written.items()})


def train_warmup(
    directory: Path, config: RunConfig | None = None, *, on_progress: OnProgress | None = None
) -> StageRecord:
    """Stage 0: supervised fine-tuning on judged replies; called again, it continues.

    Args:
        directory: of the training.
        config: of training; the defaults if None.
        on_progress: told `saving` or `saved`, and the updates made.

    Raises MachineError without the extra `train`, UsageError.
    """
    with _extra():
        from kernelblaster.training.running import run_warmup

    return run_warmup(TrainingLayout(directory), (config or RunConfig()).train, on_progress)


def train_stage(
    directory: Path,
    stage: Stage | str,
    config: RunConfig | None = None,
    *,
    dataset: DatasetName | None = None,
    device: Device | str | None = None,
    on_stage: Tell | None = None,
    on_progress: OnProgress | None = None,
    on_step: OnStep | None = None,
) -> StageRecord:
    """Train a stage with GRPO on the prompts of `make_training_data`; called again, it continues.

    `report.html` is written anew while it trains.

    Args:
        directory: of the training.
        stage: `frontend`, `midend` or `backend`; begins with the weights of the last stage before it that has some.
        config: of training (`RunConfig.train`) and judging; the defaults if None.
        dataset: a data set other than the configured one.
        device, on_stage: see `open_evaluator`.
        on_step: told each step and the figures of its completions.
        on_progress: told `generating`, `generated`, `judged`, `updated`, `saving` or `saved`, and the step.

    Raises MachineError without the extra `train` and where the machine fails to judge, UsageError, DeviceError.
    """
    with _extra():
        from kernelblaster.training.running import run_stage

    config, layout, asked = config or RunConfig(), TrainingLayout(directory), _named(Stage, stage)
    catalogue = environment_problems(config, dataset=dataset)
    with _open_judge(config, device, on_stage) as shared:
        judge = StoredJudge(shared, catalogue, layout.judged)
        record = run_stage(layout, config.train, asked, judge, on_progress, _WritesPage(layout, on_step))
    write_page([layout], layout.page)
    return record


class _WritesPage:
    """Writes the page of a training after a step, where the last one is some time old.

    Args:
        layout: of the training.
        on_step: told each step, too.
    """

    def __init__(self, layout: TrainingLayout, on_step: OnStep | None) -> None:
        self._layout = layout
        self._on_step = on_step
        self._written = -math.inf

    def __call__(self, step: int, figures: Metrics) -> None:
        if time.monotonic() - self._written >= PAGE_EVERY_S:
            write_page([self._layout], self._layout.page)
            self._written = time.monotonic()
        if self._on_step is not None:
            self._on_step(step, figures)


def write_training_page(path: Path, directories: Sequence[Path]) -> None:
    """Write one page with the curves of several trainings, a line each, and the best kernels of all.

    Args:
        path: of the page.
        directories: of trainings that differ in their seed.

    Raises UsageError where their rewards rest on different things, and where none has judged anything.
    """
    if not write_page([TrainingLayout(directory) for directory in directories], path):
        raise UsageError(
            f"no stage has judged anything in {', '.join(map(str, directories))}", hint="train one: `train frontend`"
        )


def evaluate_trained(
    directory: Path,
    name: str,
    config: RunConfig | None = None,
    *,
    stage: Stage | str = Stage.FRONTEND,
    split: Split | str = Split.HELD_OUT,
    against: str = "",
    greedy: bool = False,
    dataset: DatasetName | None = None,
    device: Device | str | None = None,
    on_stage: Tell | None = None,
    on_progress: OnProgress | None = None,
) -> ArmFigures:
    """Sample and judge completions for prompts of a split: figures of an arm of the comparison.

    Args:
        directory: of the training.
        name: `base` for the model without training, `sft`, `frontend`, `midend` or `backend`.
        config: of training and judging; the defaults if None.
        stage: whose prompts are asked.
        split: `heldout`, or `train` to see what was memorised.
        against: another arm, sampled before, to be compared with problem by problem; empty for none.
        greedy: the one likeliest completion of each prompt in place of samples.
        dataset: a data set other than the configured one.
        device, on_stage: see `open_evaluator`.
        on_progress: told `generating`, `generated` and `judged`, and the place of the prompt.

    Raises MachineError, UsageError, DeviceError.
    """
    with _extra():
        from kernelblaster.training.running import run_evaluation

    config, layout = config or RunConfig(), TrainingLayout(directory)
    arm = Arm(name, _named(Stage, stage), _named(Split, split), greedy)
    catalogue = environment_problems(config, dataset=dataset)
    with _open_judge(config, device, on_stage) as shared:
        judge = StoredJudge(shared, catalogue, layout.judged)
        return run_evaluation(layout, config.train, judge, arm, against, on_progress)


def serve_trained(
    directory: Path,
    name: str,
    config: RunConfig | None = None,
    *,
    port: int = 8001,
    batch: int = 8,
    on_ready: Tell | None = None,
) -> None:
    """Answer OpenAI's chat completions at a loopback address with trained weights, until interrupted.

    Args:
        directory: of the training.
        name: `base` for the model without training, `sft`, `frontend`, `midend` or `backend`; the model's name there.
        config: of training; the defaults if None.
        port: 0 for any that is free.
        batch: requests that are answered at once.
        on_ready: told the base URL once it answers.

    Raises MachineError without the extra `train`, UsageError.
    """
    with _extra():
        from kernelblaster.training.running import open_served
        from kernelblaster.training.serving import serve

    model = open_served(TrainingLayout(directory), (config or RunConfig()).train, name, batch)
    serve(model, port, on_ready or (lambda url: None))


def _require_directory(path: Path) -> None:
    """Raise UsageError for a file in the place of the directory that is written to."""
    if path.is_file():
        raise UsageError(f"{path} is a file", hint="name the directory of the training first, what is read after it")


Named = TypeVar("Named", bound=StrEnum)


def _named(kind: type[Named], name: str) -> Named:
    """A value by its name. Raises UsageError where there is none of that name."""
    try:
        return kind(name)
    except ValueError as error:
        raise UsageError(f"there is no {name!r} here", hint=f"choose from {', '.join(kind)}") from error


@contextmanager
def _open_judge(config: RunConfig, device: Device | str | None, on_stage: Tell | None) -> Iterator[SharedJudge]:
    if config.train.judge is None:
        with open_evaluator(config, device=device, on_stage=on_stage) as evaluator:
            yield SharedJudge(evaluator)
        return
    judge = RemoteJudge(config.train.judge)
    wanted = (config.precision, timed_workload(config, judge.device.facts, ()))
    if (judge.precision, judge.workload) != wanted:
        raise UsageError(
            f"the judge at {config.train.judge} judges {judge.precision} at {judge.workload}, "
            f"this training asks for {wanted[0]} at {wanted[1]}",
            hint="give both the same --precision and --size",
        )
    yield SharedJudge(judge)


def _prompt_rows(
    prompts: PromptBuilder,
    problems: Sequence[Problem],
    layout: TrainingLayout,
    stage: Stage,
    searched: Sequence[tuple[str, str]],
) -> list[PromptRow]:
    """What a stage asks; beside starts, kernels of the stages before it and of searches are its parents."""
    if stage is Stage.FRONTEND:
        return prompts.frontend(problems)
    first = _kernels(layout, Stage.FRONTEND)
    if stage is Stage.MIDEND:
        return prompts.midend(problems, parents_of(first, searched))
    return prompts.backend(problems, parents_of(_kernels(layout, Stage.MIDEND), first, searched))


def _kernels(layout: TrainingLayout, stage: Stage) -> Iterator[tuple[str, str]]:
    """Problem and source of every kernel that a stage wrote and the judge found correct, the fastest first."""
    correct = [one for one in read_rollouts(layout.stage(stage)) if one.verdict == Verdict.CORRECT]
    for rollout in sorted(correct, key=speedup, reverse=True):
        yield rollout.problem, layout.kernel(rollout.problem, rollout.source_sha256).read_text(encoding="utf-8")


def _searched_kernels(sources: Sequence[Path], splits: Splits, layout: TrainingLayout) -> list[tuple[str, str]]:
    """Problem and source of the kernels of searches that are known to be correct, on problems to learn from."""
    replies = with_verdicts(replies_of(sources), layout.data / VERDICTS)
    known = TrainableReplies(replies, splits).replies
    return [(one.problem, one.source) for one in known if one.outcome and one.outcome.verdict is Verdict.CORRECT]


@contextmanager
def _extra() -> Iterator[None]:
    """Raise MachineError where what is imported inside needs the extra `train`."""
    try:
        yield
    except ImportError as error:
        raise MachineError(
            f"there is nothing to train with: {error}", hint=f"install the extra: {how_to_install('train')}"
        ) from error
