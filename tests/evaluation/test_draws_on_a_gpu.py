"""Where torch sees a GPU, inputs are drawn and perturbed there, and their files hold what was drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernelblaster.config import RunConfig
from kernelblaster.evaluation.correctness.input_draws import perturb
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation
from kernelblaster.evaluation.inputs.tensors import load_tensor, read_tensor, write_tensor
from kernelblaster.problems.problem import Precision, TensorRole, TensorSpec
from kernelblaster.problems.reference import load_reference
from kernelblaster.runs.evaluations import find_problem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
]


@pytest.mark.parametrize("distribution", Distribution)
@pytest.mark.parametrize("name", ["level1/23", "level1/95", "level2/99"])
def test_a_seed_gives_the_same_draw_twice(name: str, distribution: Distribution, tmp_path: Path) -> None:
    problem = find_problem(name, RunConfig())
    key = InputKey(problem, Precision.FP16, problem.cheap_workload, (distribution, Distribution.DECLARED), 7)
    contents = []
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        with InputStore(tmp_path / place) as store, store.use(key) as drawn:
            contents.append({name: file.read_bytes() for name, file in drawn.files.items()})
    assert contents[0] == contents[1]


def test_a_perturbed_draw_is_that_of_the_files(tmp_path: Path) -> None:
    problem = find_problem("level1/23", RunConfig())
    key = InputKey(problem, Precision.FP16, problem.cheap_workload, (Distribution.MIXED,), 7)
    with InputStore(tmp_path) as store, store.use(key) as drawn:
        perturbed = perturb(
            load_reference(problem),
            replace(key, perturbation=0x1234567890),
            drawn.specs,
            drawn.files,
            drawn.perturbation_kinds,
            drawn.mixed,
        )
        index, spec = next((i, spec) for i, spec in enumerate(drawn.specs) if spec.role is TensorRole.INPUT)
        values = read_tensor(drawn.files[spec.name], spec).reshape(spec.shape)
        wanted = apply_perturbation(values, drawn.perturbation_kinds[spec.name], index, 0x1234567890)
    assert perturbed.inputs[spec.name].device.type == "cuda"
    assert torch.equal(perturbed.inputs[spec.name].cpu(), wanted)


@pytest.mark.parametrize("elements", [0, 1, 1000, (32 << 20) + 7])
def test_files_of_any_length_come_back(elements: int, tmp_path: Path) -> None:
    device = torch.device("cuda")
    values = torch.randn(elements, device=device).half()
    spec = TensorSpec("x", TensorRole.INPUT, Precision.FP16.dtype, (elements,))
    write_tensor(tmp_path / "x", values)
    assert torch.equal(load_tensor(tmp_path / "x", spec, device), values)
