"""The shipped problems: their references, tensors and drivers agree, and each is worth solving."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import pytest
import torch
from problem_files import REFERENCE, write_problem
from rotation import rotating

from kernelblaster.errors import ExitCode, ProblemError
from kernelblaster.paths import data_dir
from kernelblaster.problems.audit import audit_problem
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload, TensorRole, TensorSpec
from kernelblaster.problems.reference import load_reference, run_model, size_digest, tensor_specs, weights_of
from kernelblaster.problems.tags import Tag
from kernelblaster.problems.time_limit import within_time

PROBLEMS = Dataset(data_dir() / "kernelbench-cuda").problems()
FACTS = {
    (fact["level"], fact["number"]): fact
    for fact in map(json.loads, (Path(__file__).parents[1] / "fixtures/kernelbench/facts.jsonl").open())
}
every_problem = pytest.mark.parametrize("problem", rotating(PROBLEMS, 6))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def shapes_of_inputs(specs: tuple[TensorSpec, ...]) -> list[tuple[str, tuple[int, ...]]]:
    # Integers may be pinned to a narrower type than PyTorch draws.
    return [
        (spec.dtype if spec.dtype.is_floating_point or spec.dtype is DType.BOOL else DType.INT64, spec.shape)
        for spec in by_role(specs, TensorRole.INPUT)
    ]


def in_memory(dtype: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Without axes of one element, which change no place in memory."""
    return dtype, tuple(extent for extent in shape if extent > 1)


def by_role(specs: tuple[TensorSpec, ...], role: TensorRole) -> list[TensorSpec]:
    return [spec for spec in specs if spec.role is role]


def test_the_shipped_problems_are_kernelbenchs_and_tagged() -> None:
    assert {((problem.id.level, problem.id.number), problem.name) for problem in PROBLEMS} <= {
        (identity, fact["name"]) for identity, fact in FACTS.items()
    }
    assert all(problem.tags for problem in PROBLEMS)


@every_problem
def test_full_and_v0_have_the_shapes_of_kernelbench(problem: Problem) -> None:
    facts = FACTS[problem.id.level, problem.id.number]
    specs = tensor_specs(problem, StandardWorkload.FULL, Precision.FP32)
    assert shapes_of_inputs(specs) == [(given["dtype"], tuple(given["shape"])) for given in facts["inputs"]]
    outputs, weights = by_role(specs, TensorRole.OUTPUT), by_role(specs, TensorRole.WEIGHT)
    if not problem.mends:
        assert outputs[0].shape == tuple(facts["output"]["shape"])
        assert facts["params"].items() <= {spec.name: list(spec.shape) for spec in weights}.items()
    assert (StandardWorkload.V0 in problem.workloads) == ("v0_inputs" in facts)
    if "v0_inputs" in facts:
        first = tensor_specs(problem, StandardWorkload.V0, Precision.FP32)
        given = [(given["dtype"], tuple(given["shape"])) for given in facts["v0_inputs"]]
        # Recurrent modules of v0 hold the initial states that are inputs, the last ones, here and since.
        of_v0 = shapes_of_inputs(first)
        compared = of_v0[: len(given)] if Tag.RECURRENT in problem.tags else of_v0
        assert [in_memory(*one) for one in compared] == [in_memory(*one) for one in given]


@every_problem
def test_small_runs_on_the_cpu_and_agrees_with_its_specs(problem: Problem) -> None:
    reference = load_reference(problem)
    torch.manual_seed(3)
    with torch.inference_mode():
        inputs = reference.tensors(StandardWorkload.SMALL)
        model = reference.model(StandardWorkload.SMALL)
        outputs = run_model(problem, model, inputs)
    assert all(output.isfinite().all() for output in outputs)
    assert not model.training
    tensors = [*outputs, *inputs.values(), *weights_of(model).values()]
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    assert [tuple(tensor.shape) for tensor in tensors] == [spec.shape for spec in specs]
    floating = {spec.dtype for spec, tensor in zip(specs, tensors, strict=True) if tensor.is_floating_point()}
    assert floating <= {DType.FLOAT16}


@every_problem
def test_small_survives_fp16(problem: Problem) -> None:
    reference = load_reference(problem)
    torch.manual_seed(4)
    with torch.inference_mode():
        inputs = {
            name: tensor.half() if tensor.is_floating_point() else tensor
            for name, tensor in reference.tensors(StandardWorkload.SMALL).items()
        }
        model = reference.model(StandardWorkload.SMALL)
        try:
            outputs = run_model(problem, model.half(), inputs)
        except NotImplementedError:  # PyTorch has some operations in 16 bits on a GPU alone
            whole = {name: one.float() if one.is_floating_point() else one for name, one in inputs.items()}
            outputs = tuple(one.half() for one in run_model(problem, model.float(), whole))
    assert all(output.isfinite().all() for output in outputs)


@every_problem
def test_the_same_seed_draws_the_same_values(problem: Problem) -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(5)
        reference = load_reference(problem)
        inputs, model = reference.tensors(StandardWorkload.SMALL), reference.model(StandardWorkload.SMALL)
        draws.append([*inputs.values(), *model.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*draws, strict=True))


@every_problem
def test_sizes_suit_their_use(problem: Problem) -> None:
    assert set(problem.workloads) - {StandardWorkload.V0} == set(StandardWorkload) - {StandardWorkload.V0}
    # What a launcher tiles is not a multiple of a warp: a kernel that forgets the remainder fails.
    output = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)[0]
    extents = output.shape[-2:] or tuple(problem.workloads[StandardWorkload.SMALL].values())
    assert any(extent > 8 and extent % 8 for extent in extents) or output.elements % 8 or Tag.NETWORK in problem.tags
    for workload, limit in (
        (StandardWorkload.SMALL, 16 << 20),
        (StandardWorkload.MEDIUM, 1 << 30),
        (StandardWorkload.FULL, 40 << 30),
    ):
        assert sum(spec.bytes for spec in tensor_specs(problem, workload, Precision.FP16)) <= limit


@every_problem
def test_the_driver_passes_every_tensor_and_scalar_in_order(problem: Problem) -> None:
    driver = problem.driver_path.read_text()
    passed = re.findall(r'd\.(output|input|weight|size|scalar)\("([^"]+)"\)', driver)
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    together = re.search(r"\bd\.weights\(\)", driver) is not None
    tensors = [(str(spec.role), spec.name) for spec in specs if not together or spec.role is not TensorRole.WEIGHT]
    assert passed[: len(tensors)] == tensors
    rest = passed[len(tensors) :]
    workloads, scalars = [(kind, name) for kind, name in rest if kind == "size"], [r for r in rest if r[0] == "scalar"]
    assert rest == workloads + scalars
    assert {name for _, name in workloads} <= set(problem.workloads[StandardWorkload.SMALL])
    assert [name for _, name in scalars] == list(problem.scalars)


@every_problem
def test_the_audit_finds_no_fault(problem: Problem) -> None:
    assert audit_problem(problem) == []


def planted(tmp_path: Path, forward: str, **replacements: str) -> Problem:
    reference = REFERENCE.replace('SCALARS["factor"] * x * x', forward)
    for old, new in replacements.items():
        reference = reference.replace({"inputs": 'torch.randn(SIZES[size]["n"])', "arguments": "self, x"}[old], new)
    return load_problem(write_problem(tmp_path / "p", reference=reference))


TWO = {"arguments": "self, x, y", "inputs": "torch.randn(37), torch.randn(37)"}


@pytest.mark.parametrize(
    ("forward", "replacements", "fault"),
    [
        ("x * 0", {}, "the reference output is zero"),
        ("torch.ones_like(x)", {}, "the reference output is the same for different draws"),
        ("x / 0", {}, "the reference output is not finite"),
        ("x.relu()", {"inputs": "torch.rand(37)"}, "a copy of x passes for the output"),
        ("1 + 1e-4 * x", {}, "the reference output is the same for different draws"),
        ("x.sum() + 1e-3 * x", {}, "its own mean passes for the output"),
        ("x + y * 0", TWO, "the output does not depend on y"),
        ("x + 1e-5 * y", TWO, "the output does not depend on y"),
        ("x * x * y", {**TWO, "inputs": "torch.randn(37), torch.ones(37)"}, "y holds a single value"),
    ],
)
def test_the_audit_finds_planted_faults(tmp_path: Path, forward: str, replacements: dict[str, str], fault: str) -> None:
    faults = audit_problem(planted(tmp_path, forward, **replacements))
    assert any(fault in found for found in faults)


def test_the_audit_leaves_the_random_generator_as_it_was(tmp_path: Path) -> None:
    problem = planted(tmp_path, "x.exp()")
    torch.manual_seed(8)
    expected = torch.rand(3)
    torch.manual_seed(8)
    audit_problem(problem)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("raise ValueError('no data')\n" + REFERENCE, "ValueError: no data"),
        ("raise SyntaxError\n" + REFERENCE, "SyntaxError"),
        (REFERENCE.replace("class Model", "class Other"), "does not define Model"),
        (REFERENCE.replace("SIZES[size]", "SIZES['huge']"), "KeyError: 'huge'"),
        (REFERENCE.replace("* x * x", "@ x"), "reference.py:"),
        (REFERENCE.replace("return SCALARS", "return x, SCALARS"), "returns 2 tensors and names output"),
        (REFERENCE.replace("return SCALARS", "return [x, 1], SCALARS"), "returns list, Tensor"),
        (REFERENCE.replace("self, x", "self, x, y"), "get_inputs gives 1 inputs, forward takes 2"),
        (REFERENCE.replace("self, x", "self, x, y").replace('["n"])]', '["n"]), 3]'), "gives 3 for y"),
        (REFERENCE.replace("self, x", "self, output").replace("* x * x", "* output"), "names two tensors"),
        (REFERENCE + 'DTYPES = {"lost": "int32"}', "name lost"),
        (REFERENCE + 'DTYPES = {"x": "int32"}', "pinned to int32"),
        (REFERENCE.replace('["n"])]', '["n"]).to(torch.complex64)]'), "is torch.complex64"),
    ],
)
def test_a_reference_that_fails_is_blamed_by_name(tmp_path: Path, reference: str, message: str) -> None:
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    with pytest.raises(ProblemError) as caught:
        tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("before", "depth"),
    [("class Model", 0), ("    return [torch", 4), ("        return SCALARS", 8)],
    ids=["when read", "in get_inputs", "in forward"],
)
def test_a_reference_that_would_end_the_process_is_blamed(tmp_path: Path, before: str, depth: int) -> None:
    reference = REFERENCE.replace(before, f"{' ' * depth}import sys; sys.exit(0)\n{before}")
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    with pytest.raises(ProblemError) as caught:
        tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    line = 1 + [line.endswith("sys.exit(0)") for line in reference.split("\n")].index(True)
    assert f"{problem.reference_path}:{line}:" in caught.value.message
    assert caught.value.exit_code == ExitCode.USAGE


def test_an_interruption_is_not_the_references_fault(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "p", reference=f"raise KeyboardInterrupt\n{REFERENCE}"))
    with pytest.raises(KeyboardInterrupt):
        load_reference(problem)


def test_what_a_reference_prints_is_no_part_of_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, heard = sys.stdout, threading.Event()
    other = threading.Thread(target=lambda: (heard.wait(10), print("an answer")))
    other.start()
    reference = REFERENCE.replace("        return SCALARS", "        print('run'); heard()\n        return SCALARS")
    problem = load_problem(write_problem(tmp_path / "p", reference=f"print('read')\n{reference}"))
    loaded = load_reference(problem)
    loaded.module.__dict__["heard"] = lambda: (heard.set(), other.join())
    within_time(problem, lambda: loaded.model("small")(*loaded.inputs("small")))
    assert sys.stdout is before
    assert capsys.readouterr() == ("an answer\n", "read\nrun\n")


def test_specs_of_a_huge_problem_allocate_nothing(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "p", reference=REFERENCE.replace("4000", str(1 << 50))))
    assert tensor_specs(problem, StandardWorkload.FULL, Precision.BF16)[0].bytes == 1 << 51


def test_what_was_measured_at_a_size_is_of_that_size_alone(tmp_path: Path) -> None:
    def digest(name: str, *changes: tuple[str, str]) -> str:
        text = REFERENCE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return size_digest(load_problem(write_problem(tmp_path / name, reference=text)), "small")

    known = digest("001_Same")
    assert known == digest("002_Larger", ("4000}", "5000}"))
    assert known == digest("003_Tagged", ("SIZES =", 'TAGS = ("matmul",)\nSIZES ='))
    others = [digest("004_Smaller", ("37}", "36}")), digest("005_Other", ("* x * x", "* x + x"))]
    assert len({known, *others}) == 3
    beside = [digest(f"00{n}_Beside", ("4000}}", f"4000}}}}; EPSILON = {n}  # \f")) for n in (6, 7)]
    assert beside[0] != beside[1]


def test_loading_a_reference_leaves_no_files(tmp_path: Path) -> None:
    directory = write_problem(tmp_path / "p")
    load_reference(load_problem(directory)).inputs(StandardWorkload.SMALL)
    assert {path.name for path in directory.iterdir()} == {"reference.py", "driver.cpp", "init.cu"}
