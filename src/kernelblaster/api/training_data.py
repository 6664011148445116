"""Data to train a model on: splits, prompts of stages, sets to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.api.environments import environment_problems
from kernelblaster.api.evaluating import Tell
from kernelblaster.api.problems import DatasetName
from kernelblaster.api.training_support import named, open_judge, training_extra
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Problem
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.datasets import Asking, Card, TrainableReplies
from kernelblaster.training.exporting import SFT, SPLITS, export, known_replies, shipped
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import speedup
from kernelblaster.training.prompt_rows import PromptBuilder, parents_of
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rejudging import VERDICTS, judge_again
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.rows import PromptRow, write_rows
from kernelblaster.training.splits import Splits, make_splits
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import POSED, template_rows, write_template

TINY_SETTINGS = """\
# A training that a tiny model goes through in minutes, on the emulated GPU: see docs/training.md.
device = "emulated"
size = "small"

[evaluation]
input_sets = 2

[train]
model = {model}
steps = 60
groups = 3
prompt_tokens = 128
completion_tokens = 3
learning_rate = 1e-3
warmup_learning_rate = 1e-2
baseline = "parent"
checkpoint_steps = 20
samples = 16
"""


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
    """Searches and studies on an H200 whose replies come with the package."""
    return sorted(path for folder in (data_dir() / "recordings", shipped()) for path in folder.glob("*.jsonl.gz"))


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
        sources: recordings, knowledge bases, directories of runs and trainings; the shipped recordings if None.
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
        learned = TrainableReplies(known_replies(read, directory), splits, known=False)
        with open_judge(config or RunConfig(), device, on_stage) as shared:
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
        sources: recordings, knowledge bases, directories of runs and trainings; the shipped recordings if None.
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
    wanted = [named(Stage, stage) for stage in stages]
    told, written_in = named(PromptForm, form), named(CandidateLanguage, language)
    if written_in is CandidateLanguage.INLINE:
        raise UsageError(f"no prompts ask for {written_in}", hint="choose cuda or triton")
    layout = TrainingLayout(directory)
    catalogue = environment_problems(config, dataset=dataset)
    posed = [catalogue.find(name) for name in problems] or list(catalogue.problems)
    splits = make_splits(catalogue.problems)
    read = shipped_recordings() if sources is None else sources
    searched = _searched_kernels(read, splits, layout)
    with open_judge(config, device, on_stage) as shared:
        judge = StoredJudge(shared, catalogue, layout.judged)
        prompts = PromptBuilder(judge, splits, told, written_in)
        cards = export(read, splits, layout.data, _asking(judge, splits, told))
        written = {stage: _prompt_rows(prompts, posed, layout, stage, searched) for stage in wanted}
    for stage, rows in written.items():
        write_rows(layout.prompts(stage), rows)
    return TrainingData(cards, {layout.prompts(stage).name: len(rows) for stage, rows in written.items()})


def make_template_data(
    directory: Path,
    config: RunConfig | None = None,
    *,
    problems: Sequence[str] = (),
    stages: Sequence[Stage | str] = POSED,
    dataset: DatasetName | None = None,
) -> TrainingData:
    """Write prompts and a warm-up that a tiny model can learn from: a reply is a letter, which names a given kernel.

    Three problems are to learn from, three are held out; each poses five kernels in each stage. Nothing
    is judged yet.

    Args:
        directory: of the training; made if it is missing.
        config: data set, precision and size; the defaults if None.
        problems: names of some of these problems; all if empty.
        stages: whose prompts are written; those of `backend` pose the kernels of `midend`, and tell no counters.
        dataset: a data set other than the configured one, which holds these problems.

    Raises UsageError, ProblemError.
    """
    _require_directory(directory)
    config, layout = config or RunConfig(), TrainingLayout(directory)
    if config.size is None:
        raise UsageError(
            "template problems need the size that kernels are judged at",
            hint="give --size, or --config DIR/tiny.toml, which `train tiny DIR` writes",
        )
    catalogue = environment_problems(config, dataset=dataset)
    wanted = [named(Stage, stage) for stage in stages]
    rows = template_rows(catalogue, config.precision, config.size, names=problems, stages=wanted)
    make_splits(catalogue.problems).write(layout.data / SPLITS)
    write_template(layout, rows)
    prompts = {layout.prompts(stage).name: len(found) for stage, found in rows.prompts.items()}
    return TrainingData([], {**prompts, SFT: len(rows.warmup)})


def write_tiny_model(directory: Path, *, seed: int = 0) -> Path:
    """Write a model of 0.1 million random weights and the settings by which it learns from template problems.

    Args:
        directory: of the training; the model goes below it.
        seed: of the weights.

    Returns the path of the settings, a TOML file. Raises MachineError without the extra `train`, UsageError.
    """
    _require_directory(directory)
    with training_extra():
        from kernelblaster.training.tiny_model import write_model

    model = write_model(directory / "model", seed=seed)
    settings = directory / "tiny.toml"
    write_atomically(settings, TINY_SETTINGS.format(model=json.dumps(str(model.resolve()))))
    return settings


def _require_directory(path: Path) -> None:
    """Raise UsageError for a file in the place of the directory that is written to."""
    if path.is_file():
        raise UsageError(f"{path} is a file", hint="name the directory of the training first, what is read after it")


def _asking(judge: StoredJudge, splits: Splits, form: PromptForm) -> Asking:
    """In full, replies of a search answer its own prompts; in short, those that the stages ask."""
    prompts = PromptBuilder(judge, splits, form)
    return Asking(
        lambda reply, stage: prompts.asked_again(judge.problem(reply.problem), reply, stage),
        only_missing=form is PromptForm.FULL,
    )


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
    known = TrainableReplies(known_replies(sources, layout.data), splits).replies
    return [(one.problem, one.source) for one in known if one.outcome and one.outcome.verdict is Verdict.CORRECT]
