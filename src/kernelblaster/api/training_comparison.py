"""Arms of several trainings in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelblaster.api.training_support import named
from kernelblaster.errors import UsageError
from kernelblaster.problems.tags import Split
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.arm_pages import markdown_of
from kernelblaster.training.arm_sources import arms_of, evaluated_header, families_of, search_arm
from kernelblaster.training.arm_tables import ArmTable, Resampled, table_of
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.stages import Stage


def compare_trainings(
    directories: Sequence[Path],
    *,
    runs: Sequence[Path] = (),
    stage: Stage | str = Stage.MIDEND,
    split: Split | str = Split.HELD_OUT,
    against: str = "",
    resampled: Resampled | str = Resampled.PROBLEM,
    output: Path | None = None,
) -> ArmTable:
    """All weights that `evaluate_trained` has sampled in some trainings, seeds pooled, with intervals and differences.

    Args:
        directories: of trainings.
        runs: directories of searches without training, on the same problems, as arms of their own.
        stage, split: whose prompts were asked.
        against: label of the arm that differences are to, or the weights that begin it; the first arm if empty.
        resampled: what the bootstrap draws: `problem`, or `family` and the problems within it.
        output: where the table is written as Markdown; nowhere if None.

    Raises UsageError where nothing was sampled, and where arms rest on different things.
    """
    asked, part, drawn = named(Stage, stage), named(Split, split), named(Resampled, resampled)
    layouts = [TrainingLayout(directory) for directory in directories]
    arms = arms_of(layouts, asked, part)
    if arms:
        header = evaluated_header(layouts, asked, part)
        problems = {name for arm in arms for name in arm.judged}
        arms += [search_arm(run, header, problems) for run in runs]
    labels = list(dict.fromkeys(arm.label for arm in arms))
    table = table_of(
        arms,
        stage=asked,
        split=part,
        against=_reference(labels, against),
        families=families_of(layouts, asked) if arms else {},
        resampled=drawn,
    )
    if output is not None:
        write_atomically(output, markdown_of(table))
    return table


def _reference(labels: Sequence[str], against: str) -> str:
    """Raises UsageError where several arms begin so."""
    if not against or against in labels:
        return against or (labels[0] if labels else "")
    found = [label for label in labels if label.startswith(f"{against},")]
    if len(found) > 1:
        raise UsageError(f"several arms begin with {against!r}", hint=f"name one: {'; '.join(found)}")
    return found[0] if found else against
