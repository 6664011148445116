"""What a task says to whoever writes candidates: reference, tensors, sizes, launcher, GPU.

Prompts of the search and observations of the environment tell a problem in the same words (`prompts/task.j2`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Protocol

from kernelblaster.agent.sources import trimmed_driver, trimmed_reference
from kernelblaster.agent.summary import gpu_summary
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.devices.facts import DeviceFacts, Library
from kernelblaster.evaluation.timing.pytorch_times import times_on
from kernelblaster.problems.problem import IndexSource, Precision, Problem, TensorRole, TensorSpec

_REFERENCE_CHARACTERS = 16_000
"""Of a reference, or of a driver that judges itself; some 4,000 tokens. What is left out is said in its place."""
_WEIGHTS_SHOWN = 8
_MODULES_SHOWN = 160
_SIZES_SHOWN = 6
_CUDA_TYPE = {Precision.FP16: "__half", Precision.FP32: "float", Precision.BF16: "__nv_bfloat16"}


class Task(Protocol):
    """A problem as it is posed on one device."""

    @property
    def problem(self) -> Problem:
        """What is to be computed."""
        ...

    @property
    def precision(self) -> Precision:
        """Storage type of its floating-point tensors."""
        ...

    @property
    def workload(self) -> str:
        """Name of the workload that is timed."""
        ...

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Every tensor of the launcher for that workload."""
        ...

    @property
    def libraries(self) -> tuple[Library, ...]:
        """Libraries a candidate may link."""
        ...

    @property
    def fixed_parameters(self) -> tuple[str, ...]:
        """Names of parameters and scalars that no judged call varies."""
        ...

    @property
    def samples_blocks(self) -> bool:
        """Whether a timed size other than the cheap one executes a sample of its blocks, and no output is judged."""
        ...

    @property
    def facts(self) -> DeviceFacts:
        """The device that candidates run on."""
        ...


def task_values(task: Task) -> dict[str, object]:
    """The values of `task.j2`. Raises ProblemError."""
    problem = task.problem
    return {
        "problem": problem.id,
        "name": problem.name,
        **reference_values(task),
        "size": task.workload,
        "tensors": _tensor_lines(task.tensors, problem.indices),
        "weight_array": _weight_lines(task),
        "timed_sizes": _pairs(problem.workloads.get(task.workload, {})),
        **_verified_values(task),
        "scalars": _pairs(problem.scalars),
        "fixed": ", ".join(task.fixed_parameters),
        "launcher": launcher_of(task),
        "scalar_type": task.precision,
        "cuda_type": _CUDA_TYPE[task.precision],
        "library_policy": _library_policy(task.libraries),
        "pytorch": _pytorch(task),
        "gpu": gpu_summary(task.facts),
    }


def _pytorch(task: Task) -> str:
    """What PyTorch takes on this very GPU; empty where nobody has measured it."""
    known = times_on(task.facts, task.problem, task.precision, task.workload)
    if known is None:
        return ""
    return ", ".join(f"{mode} {time.us:.1f} us" for mode, time in known.times.items())


def reference_values(task: Task) -> dict[str, str]:
    """The reference as prompts show it: `reference.py`, or the driver of a problem that has nothing else."""
    problem = task.problem
    if problem.weakly_verified:
        text = trimmed_driver(problem.driver_path.read_text(encoding="utf-8", errors="replace"), _REFERENCE_CHARACTERS)
        return {"reference": text, "reference_kind": "the host program, with libtorch", "reference_language": "cpp"}
    text = trimmed_reference(problem.reference_path.read_text(encoding="utf-8"), _REFERENCE_CHARACTERS)
    return {"reference": text, "reference_kind": "PyTorch", "reference_language": "python"}


def launcher_of(task: Task) -> str:
    """The declaration of the function that a candidate defines. Raises ProblemError."""
    return launcher_declaration(task.problem.driver_path.read_text(encoding="utf-8"))


def _tensor_lines(tensors: tuple[TensorSpec, ...], indices: Mapping[str, IndexSource]) -> list[str]:
    weights = [tensor for tensor in tensors if tensor.role is TensorRole.WEIGHT]
    others = [tensor for tensor in tensors if tensor.role is not TensorRole.WEIGHT]
    lines = [
        f"{tensor.role} {tensor.name}: {tensor.dtype.label} {list(tensor.shape)}{_pointing(indices.get(tensor.name))}"
        for tensor in others + weights[:_WEIGHTS_SHOWN]
    ]
    hidden = len(weights) - _WEIGHTS_SHOWN
    return [*lines, f"and {hidden} more weights"] if hidden > 0 else lines


def _weight_lines(task: Task) -> list[str]:
    """What an array of all weights holds, one line per module; empty where the launcher takes no such array."""
    if not re.search(r"\bvoid\s*\*\s*const\s*\*", launcher_of(task)):
        return []
    weights = [tensor for tensor in task.tensors if tensor.role is TensorRole.WEIGHT]
    lines: list[str] = []
    numbered = enumerate(weights)
    for module, members in groupby(numbered, key=lambda pair: pair[1].name.rpartition(".")[0]):
        own = list(members)
        parts = ", ".join(f"{tensor.name.rpartition('.')[2]} {list(tensor.shape)}" for _, tensor in own)
        lines.append(f"[{own[0][0]}] {module}: {parts}" if module else f"[{own[0][0]}] {parts}")
    if len(lines) <= _MODULES_SHOWN:
        return lines
    shown = lines[:_MODULES_SHOWN]
    return [*shown, f"and {len(weights)} tensors in all, on in the order of the reference's `state_dict`"]


def _pointing(source: IndexSource | None) -> str:
    if source is None:
        return ""
    return f", indices into {source.tensor} along axis {source.axis}; of equal elements any"


def unjudged_sizes(task: Task) -> list[str]:
    """The declared sizes at which no output is compared with the reference.

    The cheap size is judged, and the timed one unless blocks are sampled. A problem without a reference has no sizes.
    """
    if task.problem.weakly_verified:
        return []
    judged = {task.problem.cheap_workload, *([] if task.samples_blocks else [task.workload])}
    return [name for name in task.problem.workloads if name not in judged]


def _verified_values(task: Task) -> dict[str, object]:
    """Which sizes are verified here, and which a kernel must be right at nonetheless."""
    workloads, unjudged = task.problem.workloads, unjudged_sizes(task)
    others = [name for name in workloads if name != task.workload]
    return {
        "timed_verified": task.workload not in unjudged,
        "verified_sizes": _sizes(workloads, [name for name in others if name not in unjudged]),
        "unverified_sizes": _sizes(workloads, [name for name in others if name in unjudged]),
    }


def _sizes(workloads: Mapping[str, Mapping[str, int]], names: list[str]) -> str:
    """Sizes of a problem, the first few in full."""
    told = [f"{name} ({_pairs(workloads[name])})" for name in names]
    more = len(told) - _SIZES_SHOWN
    return "; ".join([*told[:_SIZES_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _library_policy(libraries: tuple[Library, ...]) -> str:
    if libraries:
        return f"Besides the CUDA runtime, calls into these libraries are allowed: {', '.join(libraries)}."
    return "No library calls: only the CUDA runtime and what you write yourself."
