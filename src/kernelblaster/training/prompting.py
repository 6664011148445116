"""Prompts of the stages. A problem is told in the words of the search (`agent/prompts/task.j2`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kernelblaster.agent.rendering import PROMPTS, render, templates
from kernelblaster.agent.sources import trimmed_reference
from kernelblaster.agent.summary import profile_summary, time_summary
from kernelblaster.agent.task import Task, task_values
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.decisions import Classification
from kernelblaster.knowledge.schema import TechniqueEntry
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.start import read_start
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.stages import Stage

PARENT_HEADING = "# Kernel to improve"
"""Where the search's prompts go on from the task to the kernel (`agent/prompts/generate.j2`)."""
_FENCES = {CandidateLanguage.CUDA: "cuda", CandidateLanguage.TRITON: "python"}
_REFERENCE_CHARACTERS = 4000
_EXAMPLE_CHARACTERS = 6000
"""Of a worked example, reference and kernel together; a longer one is not shown."""


class PromptForm(StrEnum):
    """How much a prompt tells."""

    FULL = "full"
    """What the search tells: rules, tensors, sizes, contract, GPU."""
    SHORT = "short"
    """Reference, tensors and launcher alone, for models with little room."""


@dataclass(frozen=True)
class Example:
    """A solved problem of another family."""

    reference: str
    source: str


@dataclass(frozen=True)
class Parent:
    """The kernel that a prompt of stage `midend` shows; it was judged correct.

    Attributes:
        source: its text.
        evaluation: of it; None where it was not profiled.
    """

    source: str
    evaluation: Evaluation | None = None


@dataclass(frozen=True)
class PromptAdvice:
    """What a prompt of stage `backend` names beside the kernel.

    Attributes:
        bottleneck: what limits the kernel.
        technique: its id.
        entry: what the knowledge base says of it.
    """

    bottleneck: Classification
    technique: str
    entry: TechniqueEntry


def example_of(problem: Problem) -> Example | None:
    """A problem with its start as a worked example; None where that is too long to be shown."""
    reference = trimmed_reference(problem.reference_path.read_text(encoding="utf-8"), _REFERENCE_CHARACTERS)
    example = Example(reference, read_start(problem).strip())
    return example if len(example.reference) + len(example.source) <= _EXAMPLE_CHARACTERS else None


def frontend_prompt(
    task: Task, example: Example | None, form: PromptForm, language: CandidateLanguage = CandidateLanguage.CUDA
) -> tuple[Message, ...]:
    """Ask for a correct kernel. Raises ProblemError."""
    if form is PromptForm.SHORT:
        return _short(task, "", language)
    return _full(Stage.FRONTEND, **_values(task, language), example=example)


def midend_prompt(
    task: Task, parent: Parent, form: PromptForm, language: CandidateLanguage = CandidateLanguage.CUDA
) -> tuple[Message, ...]:
    """Ask for a faster kernel, in the language of its parent. Raises ProblemError."""
    if form is PromptForm.SHORT:
        return _short(task, parent.source.strip(), language)
    found = parent.evaluation
    return _full(
        Stage.MIDEND,
        **_values(task, language),
        parent=parent.source.strip(),
        profile=profile_summary(found) if found is not None and found.profile is not None else "",
        time=time_summary(found) if found is not None else "",
    )


def backend_prompt(
    task: Task,
    parent: Parent,
    advice: PromptAdvice,
    form: PromptForm,
    language: CandidateLanguage = CandidateLanguage.CUDA,
) -> tuple[Message, ...]:
    """Ask for a faster kernel by one technique, with what profiling shows. Raises ProblemError.

    What was measured with the technique on any problem is not told: some of these problems may be held out.
    """
    found = parent.evaluation
    values = {
        **_values(task, language),
        "parent": parent.source.strip(),
        "profile": profile_summary(found) if found is not None and found.profile is not None else "",
        "time": time_summary(found) if found is not None else "",
        "bottleneck": advice.bottleneck,
        "technique": advice.technique,
        "entry": advice.entry,
    }
    if form is PromptForm.SHORT:
        return (Message(role="user", content=_rendered("backend_short", **values)),)
    return _full(Stage.BACKEND, **values)


def as_frontend_prompt(searched: tuple[Message, ...]) -> tuple[Message, ...]:
    """The prompt of stage `frontend` on the problem of a prompt of the search, for the same device."""
    system, user = searched[:2]
    task = user.content.partition(PARENT_HEADING)[0].rstrip()
    reply = _rendered("frontend_reply", fence=_FENCES[CandidateLanguage.CUDA])
    return (system, Message(role="user", content=f"{task}\n\n\n{reply}"))


def shown_kernel(searched: tuple[Message, ...]) -> str:
    """The kernel to improve that a prompt of the search shows; empty where it shows none."""
    if len(searched) < 2:
        return ""
    _, _, after = searched[1].content.partition(f"{PARENT_HEADING}\n```cuda\n")
    return after.partition("\n```")[0]


def _full(stage: Stage, /, **values: object) -> tuple[Message, ...]:
    return (
        Message(role="system", content=render("system")),
        Message(role="user", content=_rendered(stage, **values)),
    )


def _short(task: Task, parent: str, language: CandidateLanguage) -> tuple[Message, ...]:
    return (Message(role="user", content=_rendered("short", **_values(task, language), parent=parent)),)


def _values(task: Task, language: CandidateLanguage) -> dict[str, object]:
    triton = language is CandidateLanguage.TRITON
    return {**task_values(task), "triton": triton, "alone": triton, "fence": _FENCES[language]}


def _rendered(template: str, /, **values: object) -> str:
    folder = Path(__file__).with_name("prompts")
    return templates(folder, PROMPTS).get_template(f"{template}.j2").render(**values).strip()
