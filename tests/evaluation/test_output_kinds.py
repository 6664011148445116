"""Several outputs, outputs and inputs of their own types, indices and flags: from the reference to the verdict."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from budget_support import reduced
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import PerturbationKind
from kernelblaster.devices.build.toolchain import Toolchain, ToolMissing
from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.correctness.compare import compare_exact, compare_output, would_be_refused
from kernelblaster.evaluation.correctness.index_ties import IndexTies
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.widening import Float32Arithmetic
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION, Distribution, attempts
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.tensors import read_tensor, storage_dtype, write_tensor
from kernelblaster.evaluation.integrity.admission import admission_faults
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.audit import audit_problem
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import IndexSource, Precision, Problem, TensorRole, TensorSpec
from kernelblaster.problems.reference import tensor_specs

PROBLEMS = Path(__file__).parents[1] / "fixtures" / "problems"
NAMES = ("argmax", "layer_norm_statistics", "masked_cumsum", "quantize", "top2")


def problem(name: str) -> Problem:
    return load_problem(PROBLEMS / name)


class Counted(TorchDispatchMode):
    """While it is entered, counts products of matrices."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = 0

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        self.products += func.overloadpacket is torch.ops.aten.mm
        return func(*args, **(kwargs or {}))


def specs(name: str, precision: Precision = Precision.FP16) -> dict[str, tuple[TensorRole, DType]]:
    return {spec.name: (spec.role, spec.dtype) for spec in tensor_specs(problem(name), "small", precision)}


@pytest.fixture
def drawn(store: InputStore, request: pytest.FixtureRequest) -> Iterator[InputSet]:
    """The declared values of the problem that the parameter names, in fp16."""
    key = InputKey(problem(request.param), Precision.FP16, "small", (Distribution.DECLARED,), seed=3)
    with store.use(key) as lent:
        yield lent


def given_to(drawn: InputSet, name: str) -> torch.Tensor:
    spec = next(spec for spec in drawn.specs if spec.name == name)
    return read_tensor(drawn.files[name], spec).reshape(spec.shape)


def test_tensors_have_the_types_they_pin() -> None:
    assert specs("argmax") == {
        "output": (TensorRole.OUTPUT, DType.INT64),
        "x": (TensorRole.INPUT, DType.FLOAT16),
    }
    assert specs("layer_norm_statistics", Precision.BF16) == {
        "output": (TensorRole.OUTPUT, DType.BFLOAT16),
        "mean": (TensorRole.OUTPUT, DType.FLOAT32),
        "rstd": (TensorRole.OUTPUT, DType.FLOAT32),
        "x": (TensorRole.INPUT, DType.BFLOAT16),
    }
    assert specs("masked_cumsum")["mask"] == (TensorRole.INPUT, DType.BOOL)
    assert list(specs("top2")) == ["values", "indices", "x"]
    assert specs("top2")["indices"] == (TensorRole.OUTPUT, DType.INT32)


@pytest.mark.parametrize("drawn", ["top2"], indirect=True)
def test_an_index_of_an_equal_element_is_right_and_a_repeated_one_is_not(drawn: InputSet, tmp_path: Path) -> None:
    expected = drawn.expected["indices"]
    x = given_to(drawn, "x").float()
    right = x.topk(2, dim=1).indices.int()
    swapped = right.flip(1)
    repeated = right.clone()
    repeated[5, 1] = repeated[5, 0]
    wrong = (swapped, repeated, right + 1, right - 999)
    for indices, passes in ((right, True), *((indices, False) for indices in wrong)):
        write_tensor(tmp_path / "i", indices)
        assert compare_output(tmp_path / "i", expected, 2.0, ACCUMULATION, 0xFF).passed is passes


@given(st.integers(1, 5), st.integers(1, 9), st.integers(0, 2), st.integers(0, 2**32), st.booleans())
@settings(deadline=None)
def test_ties_are_what_comparing_scores_says(rows: int, extent: int, axis: int, seed: int, kept: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    shape = [rows, 3, 2]
    shape[axis] = extent
    scores = torch.randint(0, 3, shape, generator=generator).half()
    best = scores.argmax(dim=axis, keepdim=kept)
    guess = torch.randint(-1, extent + 1, best.shape, generator=generator)
    spec = TensorSpec("i", TensorRole.OUTPUT, DType.INT64, tuple(best.shape))
    ties = IndexTies.of(scores, IndexSource("x", axis - 3), spec)
    accepted = ties.accepts(guess, best)
    wide = guess if kept else guess.unsqueeze(axis)
    inside = (wide >= 0) & (wide < extent)
    found = scores.gather(axis, wide.clamp(0, extent - 1))
    wanted = inside & (found == scores.amax(dim=axis, keepdim=True))
    assert torch.equal(accepted, wanted if kept else wanted.squeeze(axis))
    assert ties.accepts(best, best).all()


def test_an_index_output_must_fit_what_it_points_into() -> None:
    spec = TensorSpec("i", TensorRole.OUTPUT, DType.INT64, (4,))
    with pytest.raises(ProblemError, match="axis 1 of x"):
        IndexTies.of(torch.zeros(3, 5), IndexSource("x", 1), spec)


@pytest.mark.parametrize("poison", [0xFF, 0x5B])
def test_flags_that_were_never_written_are_not_true(tmp_path: Path, poison: int) -> None:
    spec = TensorSpec("flags", TensorRole.OUTPUT, DType.BOOL, (8,))
    (tmp_path / "flags").write_bytes(bytes([poison] * 8))
    findings = compare_exact(tmp_path / "flags", torch.ones(8, dtype=torch.bool), spec, poison)
    assert (findings.wrong, findings.unwritten) == (8, 8)
    (tmp_path / "flags").write_bytes(bytes([1] * 8))
    assert compare_exact(tmp_path / "flags", torch.ones(8, dtype=torch.bool), spec, poison).passed


@pytest.mark.parametrize("drawn", ["layer_norm_statistics"], indirect=True)
def test_a_wide_output_is_held_to_its_own_type(drawn: InputSet) -> None:
    mean = given_to(drawn, "x").float().mean(dim=1)
    expected = drawn.expected["mean"]
    assert not would_be_refused(expected, mean.double(), 2.0, ACCUMULATION)
    assert would_be_refused(expected, mean.half().double(), 2.0, ACCUMULATION)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_what_a_module_leaves_in_fp32_is_held_against_what_a_kernel_stores(
    store: InputStore, tmp_path: Path, precision: Precision
) -> None:
    softmax = reduced("level1/023_Softmax", tmp_path)
    text, plainly = softmax.reference_path.read_text(), "torch.softmax(x, dim=1)"
    assert text.count(plainly) == 1
    softmax.reference_path.write_text(text.replace(plainly, "torch.softmax(x, dim=1, dtype=torch.float32)"))
    eps = torch.finfo(storage_dtype(precision)).eps
    with store.use(InputKey(softmax, precision, "small", (Distribution.DECLARED,), seed=3)) as lent:
        (expected,) = lent.expected.tensors
        right = expected.values.to(storage_dtype(precision)).double()
        assert not would_be_refused(expected, right, 2.0, ACCUMULATION)
        assert would_be_refused(expected, right * (1 + 8 * eps), 2.0, ACCUMULATION)
        write_tensor(tmp_path / "output.bin", right.to(storage_dtype(precision)))
        assert compare_output(tmp_path / "output.bin", expected, 2.0, ACCUMULATION, 0xFF).passed


@pytest.mark.parametrize("precision", Precision)
def test_what_fp32_rounds_to_the_other_neighbour_is_as_good(store: InputStore, precision: Precision) -> None:
    """Of two million quantised values some are within fp32's roundings of half way, in 16 bits many exactly there."""
    with store.use(InputKey(problem("quantize"), precision, "large", (Distribution.DECLARED,), seed=3)) as lent:
        (expected,) = lent.expected.tensors
        x = given_to(lent, "x").float()
    largest = x.abs().amax(dim=1, keepdim=True)
    multiplied, divided = (torch.round(x * (127 / largest)), torch.round(x / (largest / 127)))
    assert not torch.equal(multiplied, divided)
    for rounded in (multiplied, divided, expected.values):
        assert not would_be_refused(expected, rounded.to(torch.int8), 2.0, ACCUMULATION)
    off = expected.values.clone()
    off[5, 7] += 1
    for wrong in (torch.trunc(x * (127 / largest)), torch.floor(x * (127 / largest) + 0.5 + 1e-3), off):
        assert would_be_refused(expected, wrong.to(torch.int8), 2.0, ACCUMULATION)


@pytest.mark.parametrize("seed", range(4))
def test_a_product_whose_terms_cancel_is_off_next_to_its_row(seed: int) -> None:
    rows = torch.tensor([[1.1, 1e-7 / 3 - 1.1]], dtype=torch.float64)
    columns = torch.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    signs = set()
    for side in (1, -1):
        with Float32Arithmetic(torch.float32, torch.device("cpu"), seed, side) as arithmetic:
            (cancelled, whole) = (rows @ columns)[0].tolist()
        assert arithmetic.moved
        assert 0 < abs(whole / 1.1 - 1) < 32 * torch.finfo(torch.float32).eps
        signs.add(cancelled > 0)
    assert signs == {True, False}


@pytest.mark.parametrize(("dtype", "times"), [(torch.float64, 1), (torch.float32, 2)])
def test_arithmetic_is_computed_in_float64_once_more_where_it_is_not_yet(dtype: torch.dtype, times: int) -> None:
    square = torch.rand(8, 8, dtype=dtype)
    with Counted() as counted, Float32Arithmetic(torch.float32, torch.device("cpu"), seed=0, side=1):
        square @ square
    assert counted.products == times


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A problem whose indices are of the best of a softmax, and which says nothing of what they point into."""
    directory = shutil.copytree(PROBLEMS / "top2", tmp_path / "gate")
    reference = (directory / "reference.py").read_text()
    gate = reference.replace("torch.topk(x, ", "torch.topk(torch.softmax(x, dim=1), ")
    (directory / "reference.py").write_text(re.sub("^INDICES.*$", "", gate, flags=re.MULTILINE))
    assert gate != reference
    return directory


def test_indices_of_what_underflows_to_equal_values_are_not_asked_for(store: InputStore, gate: Path) -> None:
    """A gate takes the best of a softmax, whose shares of large scores are zeros; any of them is as good."""
    draws = attempts(Distribution.LARGE)
    with store.use(InputKey(load_problem(gate), Precision.FP32, "small", draws, 3)) as lent:
        indices = lent.expected["indices"]
        ranked = torch.topk(given_to(lent, "x"), indices.spec.shape[-1], dim=1).indices
    assert not would_be_refused(indices, ranked.to(indices.values.dtype), 2.0, ACCUMULATION)
    assert would_be_refused(indices, ranked.flip(1).to(indices.values.dtype), 2.0, ACCUMULATION)


@pytest.mark.parametrize("seed", range(3))
def test_an_index_of_any_of_several_that_are_equal_is_right(store: InputStore, gate: Path, seed: int) -> None:
    """Of a thousand rows in bf16, the best 8 of some have scores that are equal three or four ways."""
    reference = (gate / "reference.py").read_text()
    for before, after in (('"rows": 35', '"rows": 1025'), ("dim=1), 2,", "dim=1), 8,")):
        assert reference.count(before) == 1
        reference = reference.replace(before, after)
    (gate / "reference.py").write_text(reference)
    with store.use(InputKey(load_problem(gate), Precision.BF16, "small", (Distribution.DECLARED,), seed)) as lent:
        indices, x = lent.expected["indices"], given_to(lent, "x").float()
    first, last = (torch.sort(-some, dim=1, stable=True).indices[:, :8] for some in (x, x.flip(1)))
    swapped = first.clone()
    row = int((x.gather(1, first[:, :1]) > x.gather(1, first[:, 1:2])).nonzero()[0, 0])
    swapped[row, :2] = first[row, :2].flip(0)
    for ranked, refused in ((first, False), (x.shape[1] - 1 - last, False), (swapped, True)):
        assert would_be_refused(indices, ranked.to(indices.values.dtype), 2.0, ACCUMULATION) is refused


def test_what_is_exactly_half_way_goes_to_the_even_neighbour(store: InputStore, tmp_path: Path) -> None:
    directory = shutil.copytree(PROBLEMS / "quantize", tmp_path / "quantize")
    reference = (directory / "reference.py").read_text()
    scale, rounded = (line for line in reference.splitlines() if "scale =" in line or "x / scale" in line)
    (directory / "reference.py").write_text(
        reference.replace(scale, "        steps = torch.round(x.float() * 2) / 2").replace(
            rounded, "        return torch.round(steps / 4 + steps * 0.75).to(torch.int8)"
        )
    )
    with store.use(InputKey(load_problem(directory), Precision.FP32, "small", (Distribution.DECLARED,), 3)) as lent:
        (expected,) = lent.expected.tensors
        steps = torch.round(given_to(lent, "x") * 2) / 2
    assert not would_be_refused(expected, torch.round(steps).to(torch.int8), 2.0, ACCUMULATION)
    assert would_be_refused(expected, torch.floor(steps + 0.5).to(torch.int8), 2.0, ACCUMULATION)


@pytest.mark.parametrize("drawn", ["masked_cumsum"], indirect=True)
def test_flags_are_rotated_and_stay_what_they_are(drawn: InputSet) -> None:
    assert drawn.perturbation_kinds == {"x": PerturbationKind.SHIFT, "mask": PerturbationKind.ROTATE}
    assert set(drawn.files["mask"].read_bytes()) == {0, 1}


@pytest.mark.parametrize("name", NAMES)
def test_the_problems_are_sound(store: InputStore, name: str) -> None:
    assert audit_problem(problem(name)) == []
    assert admission_faults(problem(name), Precision.FP16, store) == []


WRONG = {
    "a row of the statistics is not written": ("layer_norm_statistics", "mean[blockIdx.x] = middle, ", "", "mean"),
    "the statistics lose digits": (
        "layer_norm_statistics", "rstd[blockIdx.x] = scale", "rstd[blockIdx.x] = __half2float(__float2half(scale))",
        "rstd",
    ),
    "the mask is ignored": ("masked_cumsum", "if (mask[i]) ", "", "output"),
    "the second index is the first": ("top2", "indices[2 * row + 1] = next", "indices[2 * row + 1] = at", "indices"),
    "what is half way goes to zero": ("quantize", "rintf(", "truncf(", "output"),
    "the index is off by one": ("argmax", "= place;\n}", "= place + 1;\n}", "output"),
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    try:
        Toolchain.find()
    except ToolMissing as error:
        pytest.skip(error.message)
    with InputStore(tmp_path_factory.mktemp("inputs")) as inputs:
        config = EvaluationConfig(input_sets=4)
        yield Evaluator(
            EmulatedDevice.create("h200", policy=CandidateRules()),
            inputs,
            config,
            "small",
            precision=Precision.FP16,
            seed=5,
        )


@pytest.mark.nvcc
@pytest.mark.parametrize("name", NAMES)
def test_an_honest_kernel_is_correct_on_the_emulated_device(evaluator: Evaluator, name: str) -> None:
    solved = problem(name)
    evaluation = evaluator.evaluate(solved, solved.init_path.read_text(), profile=False)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.reason
    assert {figures.tensor for figures in evaluation.errors} == set(solved.outputs)
    assert evaluation.timing is not None


@pytest.mark.nvcc
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_output_is_refused_by_name(evaluator: Evaluator, wrong: str) -> None:
    name, before, after, tensor = WRONG[wrong]
    source = problem(name).init_path.read_text()
    assert source.count(before) == 1
    evaluation = evaluator.evaluate(problem(name), source.replace(before, after), profile=False)
    assert evaluation.verdict is Verdict.WRONG_VALUES
    assert f"{tensor}" in evaluation.reason
    assert not all(figures.passed for figures in evaluation.errors)
