"""No draw is asked for on which honest kernels that sum or round otherwise than PyTorch would be refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernelblaster.evaluation.correctness.choosing import Chosen, choose
from kernelblaster.evaluation.correctness.compare import would_be_refused
from kernelblaster.evaluation.correctness.input_draws import draw
from kernelblaster.evaluation.correctness.reference_output import ReferenceTensor, solve
from kernelblaster.evaluation.correctness.reference_runs import numerics, run
from kernelblaster.evaluation.correctness.steadiness import steady
from kernelblaster.evaluation.correctness.widening import Jittered, SummedOtherwise
from kernelblaster.evaluation.inputs.distributions import Distribution, accumulation, attempts
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.recipes import Recipe
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, storage_dtype
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import Precision, StandardWorkload, TensorRole
from kernelblaster.problems.reference import TORCH, load_reference, tensor_specs

CPU = torch.device("cpu")
FACTOR = 2.0


def drawn(problem_id: str, precision: Precision, distribution: Distribution, seed: int) -> Chosen:
    """An input set at size small, as the judge draws it."""
    problem = find_problem(problem_id, data_dir() / "kernelbench-cuda")
    key = InputKey(problem, precision, StandardWorkload.SMALL, attempts(distribution), seed)
    return choose(key, tensor_specs(problem, StandardWorkload.SMALL, precision))


def outputs(chosen: Chosen) -> tuple[ReferenceTensor, ...]:
    """What is expected of it."""
    assert chosen.expected is not None
    return chosen.expected.tensors


def honest(chosen: Chosen, precision: Precision, seed: int) -> tuple[torch.Tensor, ...]:
    """Results whose products are added in another order and rounded where PyTorch rounds them."""
    dtype = storage_dtype(precision)
    otherwise = SummedOtherwise(0.0, one_sign=False, device=CPU, seed=seed)
    with TORCH, torch.no_grad(), numerics(), otherwise:
        return run(chosen.drawn, dtype, CPU)


def refused(expected: ReferenceTensor, result: torch.Tensor, distribution: Distribution) -> bool:
    """Whether a result is, as it is stored."""
    stored = result.to(TORCH_DTYPES[expected.spec.dtype])
    return would_be_refused(expected, stored, FACTOR, accumulation(distribution))


@pytest.mark.parametrize(
    ("problem_id", "precision"),
    [
        ("level2/005", Precision.FP16),
        ("level2/021", Precision.FP16),
        ("level2/046", Precision.BF16),
        ("level2/081", Precision.FP16),
        ("level2/090", Precision.FP16),
        ("level2/093", Precision.FP32),
        ("level3/031", Precision.FP16),
    ],
)
def test_another_order_of_large_sums_is_not_refused(problem_id: str, precision: Precision) -> None:
    """A softmax takes one of two large scores that are nearly equal; which, PyTorch gets right by luck."""
    large = 0
    for seed in range(12):
        chosen = drawn(problem_id, precision, Distribution.LARGE, seed)
        large += chosen.recipe.distribution is Distribution.LARGE
        for other in range(2):
            results = honest(chosen, precision, seed=other)
            assert not any(
                refused(expected, result, chosen.recipe.distribution)
                for expected, result in zip(outputs(chosen), results, strict=True)
            ), (seed, chosen.recipe)
    assert large, "milder large values are found, not others in place of all"


def lanes(a: torch.Tensor, b: torch.Tensor, count: int) -> torch.Tensor:
    """a @ b for a column b by `count` threads in float32, whose sums are added pairwise at last."""
    fill = -a.shape[1] % count
    left = torch.nn.functional.pad(a.float(), (0, fill)).reshape(a.shape[0], -1, count)
    right = torch.nn.functional.pad(b.float().reshape(-1), (0, fill)).reshape(-1, count)
    sums = torch.zeros(a.shape[0], count)
    for step in range(left.shape[1]):
        sums = torch.addcmul(sums, left[:, step], right[step])
    while sums.shape[1] > 1:
        sums = sums[:, : sums.shape[1] // 2] + sums[:, sums.shape[1] // 2 :]
    return sums


@pytest.mark.parametrize("count", [16, 32, 256])
def test_terms_of_one_sign_may_be_added_by_one_thread(count: int) -> None:
    """A column far from zero has positive and negative elements in turn: each thread of a block meets one sign."""
    for seed in range(4):
        chosen = drawn("level1/004", Precision.FP16, Distribution.OFFSET, seed)
        (expected,) = outputs(chosen)
        result = lanes(chosen.drawn.inputs["A"].cpu(), chosen.drawn.inputs["B"].cpu(), count)
        assert not refused(expected, result, chosen.recipe.distribution), (seed, chosen.recipe)


@pytest.mark.parametrize("distribution", [Distribution.DECLARED, Distribution.NEGATIVE])
def test_few_means_that_were_rounded_are_not_the_budget_of_all_elements(distribution: Distribution) -> None:
    """Each plane of a batch norm has its mean subtracted: ten means of PyTorch may all be rounded well."""
    for seed in range(12):
        chosen = drawn("level2/015", Precision.BF16, distribution, seed)
        with TORCH, torch.no_grad(), numerics(), Jittered(2.0**-8, CPU, seed=1000 + seed):
            (result,) = run(chosen.drawn, torch.bfloat16, CPU)
        (expected,) = outputs(chosen)
        assert not refused(expected, result, chosen.recipe.distribution), seed


def test_structured_inputs_of_middling_outputs_are_asked_for() -> None:
    """Several results of so many elements would make draws uninformative that one result leaves as they are."""
    found = [drawn("level2/015", Precision.FP16, Distribution.SPARSE, seed).recipe.distribution for seed in range(4)]
    assert Distribution.SPARSE in found


def test_a_draw_on_which_pytorch_was_lucky_is_not_steady() -> None:
    """Of the same draw, what PyTorch left is right and what another order left is wrong: so it is not asked for."""
    lucky = 0
    for chosen in _large("level2/005"):
        assert chosen.expected is not None
        found = steady(chosen.drawn, chosen.expected, Precision.FP16, Distribution.LARGE)
        results = [honest(chosen, Precision.FP16, seed) for seed in range(4)]
        wrong = any(refused(outputs(chosen)[0], result, Distribution.LARGE) for (result,) in results)
        assert not (found and wrong)
        lucky += wrong
    assert lucky, "some are lucky, or this test shows nothing"


def _large(problem_id: str) -> Iterator[Chosen]:
    """The largest values that the judge tries first, whether or not they are steady."""
    problem = find_problem(problem_id, data_dir() / "kernelbench-cuda")
    specs = tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)
    recipe = Recipe(Distribution.LARGE, 14)
    for seed in range(8):
        values = draw(load_reference(problem), StandardWorkload.SMALL, specs, recipe, seed)
        results = [spec for spec in specs if spec.role is TensorRole.OUTPUT]
        yield Chosen(recipe, values, solve(values, results, Precision.FP16, recipe.distribution))


def test_sums_that_float32_has_exactly_are_not_moved() -> None:
    random = torch.Generator().manual_seed(0)
    coarse = [torch.randint(-1, 2, (40, 40), generator=random).half() * 8 for _ in range(2)]
    with SummedOtherwise(0.0, one_sign=False, device=CPU, seed=0) as otherwise:
        assert torch.equal(coarse[0] @ coarse[1], coarse[0] @ coarse[1])
    assert not otherwise.moved
    spread = [torch.randn(40, 40, generator=random).half() for _ in range(2)]
    with SummedOtherwise(0.0, one_sign=False, device=CPU, seed=0) as otherwise:
        moved = spread[0] @ spread[1]
    exact = spread[0].double() @ spread[1].double()
    assert otherwise.moved
    assert not torch.equal(moved, exact.half())
    assert bool(
        ((moved.double() - exact).abs() <= 2.0**-11 * exact.abs() + 2.0**-19 * exact.square().mean().sqrt()).all()
    )
