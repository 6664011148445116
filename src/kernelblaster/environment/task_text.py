"""A problem as a device poses it, and what an agent is told of it."""

from __future__ import annotations

from dataclasses import dataclass

from kernelblaster.agent.rendering import render
from kernelblaster.agent.summary import gpu_summary
from kernelblaster.agent.task import reference_values, task_values
from kernelblaster.devices.facts import DeviceFacts, Library
from kernelblaster.problems.problem import Precision, Problem, TensorSpec
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.start import read_start
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.problems.varied_parameters import fixed_parameters


@dataclass(frozen=True)
class PosedProblem:
    """A problem as this device poses it; see `agent.task.Task`."""

    problem: Problem
    precision: Precision
    workload: str
    tensors: tuple[TensorSpec, ...]
    libraries: tuple[Library, ...]
    fixed_parameters: tuple[str, ...]
    facts: DeviceFacts
    samples_blocks: bool


@dataclass(frozen=True)
class TaskText:
    """What `reset` tells of a problem.

    Attributes:
        description: rules, reference, tensors, sizes, launcher and GPU.
        reference: text of the reference, shortened.
        start: the kernel to begin with, which is the baseline.
        gpu: what an author must know of the GPU.
    """

    description: str
    python_form: str
    """What a Python module must be, to be read after the description, where both languages are allowed."""
    python_alone: str
    """The same where a `.cu` file is not."""
    inline_form: str
    """As `python_form`, of CUDA in Python."""
    inline_alone: str
    reference: str
    start: str
    gpu: str


def posed(
    problem: Problem,
    precision: Precision,
    workload: str,
    libraries: tuple[Library, ...],
    facts: DeviceFacts,
    *,
    samples_blocks: bool,
) -> PosedProblem:
    """A problem in the precision of a run, or its own, at one size, on a device. Raises ProblemError."""
    precision = problem.precision_for(precision)
    return PosedProblem(
        problem=problem,
        precision=precision,
        workload=workload,
        tensors=tensor_specs(problem, workload, precision),
        libraries=libraries,
        fixed_parameters=fixed_parameters(problem, undeclared_extents(problem)),
        facts=facts,
        samples_blocks=samples_blocks,
    )


def task_text(task: PosedProblem) -> TaskText:
    """What is told of a problem. Raises ProblemError."""
    return TaskText(
        description=f"{render('system')}\n\n{render('task', **task_values(task))}",
        python_form=_form("python_form", task.problem, alone=False),
        python_alone=_form("python_form", task.problem, alone=True),
        inline_form=_form("inline_form", task.problem, alone=False),
        inline_alone=_form("inline_form", task.problem, alone=True),
        reference=reference_values(task)["reference"],
        start=read_start(task.problem),
        gpu=gpu_summary(task.facts),
    )


def _form(name: str, problem: Problem, *, alone: bool) -> str:
    return "\n\n" + render(name, scalars=", ".join(problem.scalars), alone=alone)
