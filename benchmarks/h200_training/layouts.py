"""What the parts of `run.py` ask and teach."""

from __future__ import annotations

import json
import sys

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.models.base import Message
from kernelblaster.problems.start import read_start
from kernelblaster.training.exporting import SFT
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rows import ReplyForm, SftRow, answer, read_rows, write_rows
from kernelblaster.training.splits import make_splits
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import LETTERS, RARE, TemplateRows, midend_choices

PROBLEM = "L1_23"
BACKEND = Stage.BACKEND
_OVERHEAD = 8
"""Tokens of the chat template, at most."""


def every_prompt(rows: TemplateRows, lengths: list[int]) -> list[tuple[Message, ...]]:
    """All that the random weights are to answer with a letter."""
    asked = [row.prompt for prompts in rows.prompts.values() for row in prompts]
    return [*asked, _backend_question(), *map(_long_question, lengths)]


def lay_out_long(layout: TrainingLayout, rows: TemplateRows, tokens: int) -> None:
    """`frontend` on one problem with a prompt of almost so many tokens: a byte is one in the tokenizer of bytes."""
    row = rows.prompts[Stage.FRONTEND][0].model_copy(update={"prompt": _long_question(tokens)})
    write_rows(layout.prompts(Stage.FRONTEND), [row])


def add_backend_letters(layout: TrainingLayout) -> None:
    """The warm-up teaches letters for a short stand-in of the prompt of `backend`, too."""
    rows = read_rows(layout.data / SFT, SftRow)
    more = [
        rows[0].model_copy(update={"prompt": _backend_question(), "completion": answer(letter), "stage": BACKEND})
        for letter in LETTERS * (RARE // len(LETTERS))
    ]
    write_rows(layout.data / SFT, [*rows, *more])


def lay_out_backend(layout: TrainingLayout, catalogue: Catalogue, judge: StoredJudge) -> None:
    """Rows of stage `backend` as `train data` makes them, counters collected, asked in short and answered by letter."""
    problem = catalogue.find(PROBLEM)
    prompts = PromptBuilder(judge, make_splits(catalogue.problems), PromptForm.SHORT)
    rows = prompts.backend([problem], {})
    if not rows:
        profile = judge.evaluate(problem, read_start(problem), read_start(problem), profile=True)[1].profile
        sys.exit(f"no bottleneck could be named, so there is no prompt: {'no profile' if profile is None else profile}")
    print(rows[0].prompt[-1].content[-1500:], flush=True)
    asked = [
        row.model_copy(
            update={
                "prompt": _backend_question(),
                "reply": ReplyForm.CHOICE,
                "choices": json.dumps(midend_choices(row.parent)),
            }
        )
        for row in rows[:1]
    ]
    write_rows(layout.prompts(BACKEND), asked)


def link_to(layout: TrainingLayout, other: TrainingLayout) -> None:
    """Begin with the warm-up of another training, and with what it had judged."""
    layout.root.mkdir(parents=True, exist_ok=True)
    for mine, its in ((layout.warmup, other.warmup), (layout.judged, other.judged)):
        if not mine.exists():
            mine.symlink_to(its.resolve())


def _backend_question() -> tuple[Message, ...]:
    return (Message(role="user", content=f"{BACKEND.value[0]} Softmax"),)


def _long_question(tokens: int) -> tuple[Message, ...]:
    word = "softmax "
    return (Message(role="user", content=(word * (tokens // len(word)))[: tokens - _OVERHEAD]),)
