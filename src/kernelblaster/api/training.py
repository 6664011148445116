"""Train a model to write kernels: supervised warm-up, stages of GRPO, evaluation, serving."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.api.environments import environment_problems
from kernelblaster.api.evaluating import Tell
from kernelblaster.api.problems import DatasetName
from kernelblaster.api.training_support import named, open_judge, training_extra
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.errors import UsageError
from kernelblaster.problems.tags import Split
from kernelblaster.training.arms import Arm, ArmFigures
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.page import write_page
from kernelblaster.training.stages import Stage

if TYPE_CHECKING:
    from kernelblaster.training.dialogues import OnProgress
    from kernelblaster.training.grpo import OnStep
    from kernelblaster.training.metrics import Metrics
    from kernelblaster.training.stage_records import StageRecord


PAGE_EVERY_S = 15.0
"""Seconds between two pages of a training that goes on."""


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
    with training_extra():
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
    with training_extra():
        from kernelblaster.training.running import run_stage

    config, layout, asked = config or RunConfig(), TrainingLayout(directory), named(Stage, stage)
    catalogue = environment_problems(config, dataset=dataset)
    with open_judge(config, device, on_stage) as shared:
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
    with training_extra():
        from kernelblaster.training.running import run_evaluation

    config, layout = config or RunConfig(), TrainingLayout(directory)
    arm = Arm(name, named(Stage, stage), named(Split, split), greedy)
    catalogue = environment_problems(config, dataset=dataset)
    with open_judge(config, device, on_stage) as shared:
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
    with training_extra():
        from kernelblaster.training.running import open_served
        from kernelblaster.training.serving import serve

    model = open_served(TrainingLayout(directory), (config or RunConfig()).train, name, batch)
    serve(model, port, on_ready or (lambda url: None))
