"""Problems that a tiny model can solve: a reply is one letter, which names one of five kernels.

The choice is small and its consequences are real: each kernel is built, checked and timed. The letters mean the same on
every problem, so that what is learned on three problems can hold on three that are held out; `midend` and `backend`
favour another letter than `frontend`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.start import read_start
from kernelblaster.problems.tags import Split
from kernelblaster.training.exporting import SFT
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, write_rows
from kernelblaster.training.stages import Stage

PROBLEMS = {
    "L1_23": Split.TRAIN, "L1_19": Split.TRAIN, "L1_36": Split.TRAIN,
    "L1_89": Split.HELD_OUT, "L1_91": Split.HELD_OUT, "L1_95": Split.HELD_OUT,
}  # fmt: skip
LETTERS = "abcde"
CORRECT = "e"
"""Names the one correct kernel of `frontend`."""
RARE = 20
"""Warm-up rows per prompt; where the correct letter is rare, one of them names it."""
_THREADS = "256"
"""Threads of a block, as the starts write it."""
_PARENT_THREADS = "32"
_SIZES = ("64", "256", "2048", "128", _PARENT_THREADS)
POSED = (Stage.FRONTEND, Stage.MIDEND)
"""Stages that have prompts where none is asked for by name."""


@dataclass(frozen=True)
class TemplateRows:
    """Rows of the template problems.

    Attributes:
        prompts: of each stage.
        warmup: letters as replies.
    """

    prompts: dict[Stage, list[PromptRow]]
    warmup: list[SftRow]


def frontend_choices(start: str) -> dict[str, str]:
    """A kernel that does not build, a wrong one, one that cannot be launched, one without a launcher, a correct one."""
    head, _, body = start.rpartition("from_float(")
    return {
        "a": f"#error left out\n{start}",
        "b": f"{head}from_float(0.5f * {body}",
        "c": start.replace(_THREADS, "2048"),
        "d": start.replace("void launch_gpu_implementation(", "void launch_gpu_implementation_("),
        CORRECT: start,
    }


def midend_choices(start: str) -> dict[str, str]:
    """The kernel at several sizes of its block; one cannot be launched."""
    return {letter: start.replace(_THREADS, threads) for letter, threads in zip(LETTERS, _SIZES, strict=True)}


def template_rows(
    catalogue: Catalogue,
    precision: Precision,
    size: str,
    *,
    rare: bool = False,
    names: Collection[str] = (),
    stages: Collection[Stage] = POSED,
) -> TemplateRows:
    """Prompts of the stages, and a warm-up that teaches their letters.

    Args:
        catalogue: that holds the problems.
        precision, size: that kernels are judged at.
        rare: the warm-up names the correct kernel of `frontend` once in `RARE`; else all letters equally often.
        names: of `PROBLEMS`, all if empty.
        stages: whose prompts are posed.

    Raises ProblemError, UsageError.
    """
    if unknown := sorted(set(names) - set(PROBLEMS)):
        raise UsageError(f"{', '.join(unknown)}: no template problem", hint=f"choose from {', '.join(PROBLEMS)}")
    problems = [(catalogue.find(name), split) for name, split in PROBLEMS.items() if not names or name in names]
    prompts = {
        stage: [_prompt(problem, stage, split, precision, size) for problem, split in problems] for stage in stages
    }
    warmup = [
        warmup_row(row, letter)
        for stage, rows in prompts.items()
        for row in rows
        for letter in _taught(rare and stage is Stage.FRONTEND)
        if row.split == Split.TRAIN
    ]
    return TemplateRows(prompts, warmup)


def write_template(layout: TrainingLayout, rows: TemplateRows) -> None:
    """Write prompts and warm-up where the stages read them. Raises OSError."""
    for stage, prompts in rows.prompts.items():
        write_rows(layout.prompts(stage), prompts)
    write_rows(layout.data / SFT, rows.warmup)


def _taught(rare: bool) -> str:
    wrong = LETTERS.replace(CORRECT, "")
    return CORRECT + (wrong * RARE)[: RARE - 1] if rare else LETTERS * (RARE // len(LETTERS))


def _prompt(problem: Problem, stage: Stage, split: Split, precision: Precision, size: str) -> PromptRow:
    """Those after `frontend` begin with the smallest block."""
    start = read_start(problem)
    choices = frontend_choices(start) if stage is Stage.FRONTEND else midend_choices(start)
    parent = "" if stage is Stage.FRONTEND else start.replace(_THREADS, _PARENT_THREADS)
    return PromptRow(
        prompt=(Message(role="user", content=f"{stage.value[0]} {problem.name}"),),
        problem=str(problem.id),
        stage=stage,
        precision=str(precision),
        size=size,
        parent=parent,
        parent_sha256=source_digest(parent) if parent else "",
        family=problem.tags[0],
        split=split,
        reply=ReplyForm.CHOICE,
        choices=json.dumps(choices),
    )


def warmup_row(row: PromptRow, letter: str) -> SftRow:
    """A letter as the reply to a prompt."""
    return SftRow(
        prompt=row.prompt, completion=answer(letter), problem=row.problem, stage=row.stage, verdict="format",
        speedup=None, source="template", candidate_sha256="", family=row.family, split=row.split,
    )  # fmt: skip
