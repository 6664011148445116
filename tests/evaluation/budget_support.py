"""Judges what a torch function returns as if a kernel had written it."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from kernelblaster.evaluation.correctness.compare import compare_output
from kernelblaster.evaluation.correctness.findings import Findings
from kernelblaster.evaluation.correctness.input_draws import perturb
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION, Distribution, accumulation
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.perturbations import derived_perturbation
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, read_tensor, storage_dtype, write_tensor
from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload, TensorRole
from kernelblaster.problems.reference import load_reference

Kernel = Callable[..., torch.Tensor]
"""Takes float32 inputs and weights in the launcher's order, returns the output before it is stored."""


RELU_SLUG = "level1/019_ReLU"

REDUCED = {
    "level1/001_Square_matrix_multiplication": {"n": 131},
    "level1/004_Matrix_vector_multiplication": {"m": 67, "k": 1537},
    "level1/019_ReLU": {"batch_size": 17, "dim": 1009},
    "level1/023_Softmax": {"batch_size": 19, "dim": 1501},
    "level1/026_GELU": {"batch_size": 17, "dim": 1009},
    "level1/036_RMSNorm": {"batch_size": 2, "features": 33, "dim1": 13, "dim2": 17},
    "level1/040_LayerNorm": {"batch_size": 3, "features": 5, "dim1": 13, "dim2": 37},
    "level1/042_Max_Pooling_2D": {"batch_size": 2, "channels": 3, "height": 35, "width": 37},
    "level1/047_Sum_reduction_over_a_dimension": {"batch_size": 3, "dim1": 257, "dim2": 131},
    "level1/089_cumsum": {"batch_size": 9},
    "level1/095_CrossEntropyLoss": {"batch_size": 131, "num_classes": 257},
}
"""Extents of `small` that the tests use instead of the declared ones, to be quick."""


@cache
def problem(slug: str) -> Problem:
    """A shipped problem, `level1/023_Softmax`."""
    return load_problem(data_dir() / "kernelbench-cuda" / slug)


def reduced(slug: str, root: Path, *, medium: dict[str, int] | None = None) -> Problem:
    """A copy of a shipped problem with a reduced size `small`, and a `medium` if one is asked for."""
    original = problem(slug)
    extents = {StandardWorkload.SMALL: {**original.workloads[StandardWorkload.SMALL], **REDUCED.get(slug, {})}}
    if medium is not None:
        extents[StandardWorkload.MEDIUM] = medium
    directory = root / slug
    directory.mkdir(parents=True, exist_ok=True)
    text = (original.directory / "reference.py").read_text()
    for workload, wanted in extents.items():
        text, count = re.subn(rf'"{workload}": \{{[^}}]*\}}', f'"{workload}": {wanted}', text)
        assert count == 1
    (directory / "reference.py").write_text(text)
    shutil.copyfile(original.driver_path, directory / original.driver_path.name)
    return dataclasses.replace(original, directory=directory, workloads=extents)


class Jury:
    """Compares functions with the references of input sets that it keeps."""

    def __init__(self, store: InputStore, directory: Path, factor: float = 2.0) -> None:
        self._store = store
        self._root = store.directory.parent / "reduced"
        self._output = directory / "output.bin"
        self._factor = factor

    def judge(
        self,
        slug: str,
        precision: Precision,
        distribution: Distribution,
        kernel: Kernel,
        seed: int = 7,
        *,
        declared: bool = False,
    ) -> Findings:
        """Run a function on an input set, at reduced or at declared extents, and compare what it returns."""
        draws = (distribution, Distribution.DECLARED)
        judged = problem(slug) if declared else reduced(slug, self._root)
        key = InputKey(judged, precision, StandardWorkload.SMALL, draws, seed)
        with self._store.use(key) as drawn:
            result = kernel(*tensors(drawn))
            (expected,) = drawn.expected.tensors
            stored = result if expected.scale is None else result.to(storage_dtype(precision))
            write_tensor(self._output, stored)
            loss, judge_nan = accumulation(drawn.distribution), not drawn.infinite
            return compare_output(self._output, expected, self._factor, loss, 0xFF, judge_nan=judge_nan)


def tensors(drawn: InputSet) -> list[torch.Tensor]:
    """Inputs and weights as a kernel sees them, floating-point ones upcast to float32."""
    found = []
    for spec in drawn.specs:
        if spec.role is TensorRole.OUTPUT:
            continue
        stored = read_tensor(drawn.files[spec.name], spec).reshape(spec.shape)
        found.append(stored.float() if stored.is_floating_point() else stored)
    return found


def passes_when_timed(
    store: InputStore, slug: str, medium: dict[str, int], precision: Precision, kernel: Kernel
) -> tuple[bool, bool]:
    """Whether a function passes at extents that are timed: in the call that verifies it, and in a timed one."""
    judged = reduced(slug, store.directory.parent / "reduced", medium=medium)
    timed = plan_inputs(judged, precision, StandardWorkload.MEDIUM, 10, seed=11).timed
    verified, sampled = (_passes(store, timed, number, kernel) for number in (0, derived_perturbation(11, slug)))
    return verified, sampled


def _passes(store: InputStore, timed: InputKey, perturbation: int, kernel: Kernel) -> bool:
    key, file = dataclasses.replace(timed, perturbation=perturbation), store.directory.parent / "output.bin"
    with store.use(timed) as base, store.use(key) as drawn:
        reference, kinds = load_reference(key.problem), base.perturbation_kinds
        given = perturb(reference, key, base.specs, base.files, kinds, base.mixed)
        values = [x.float() if x.is_floating_point() else x for x in (*given.inputs.values(), *given.weights.values())]
        (expected,) = drawn.expected.tensors
        write_tensor(file, kernel(*values).to(TORCH_DTYPES[expected.spec.dtype]))
        return compare_output(file, expected, 2.0, ACCUMULATION, 0xFF, judge_nan=not drawn.infinite).passed
