"""What the timed size is drawn by: masks where they are defined, hard values in every input, few references."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from budget_support import problem, reduced
from rotation import rotating

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.evaluation.correctness import choosing
from kernelblaster.evaluation.correctness.choosing import Chosen, choose
from kernelblaster.evaluation.correctness.input_draws import Draw
from kernelblaster.evaluation.correctness.reference_output import informative
from kernelblaster.evaluation.inputs.distributions import MASKS_OF_MIXTURES, Distribution, attempts
from kernelblaster.evaluation.inputs.drawing import permitted_perturbation
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.inputs.recipes import Recipe, going_on, recipes
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import tensor_specs

ALL = [*Dataset(data_dir() / "kernelbench-cuda").problems(), *Dataset(data_dir() / "kernrl").problems()]
RELU, SOFTMAX, DIVERGENCE = "level1/019_ReLU", "level1/023_Softmax", "level1/098_KLDivLoss"
DEFINED = (RELU, SOFTMAX, "level1/024_LogSoftmax", "level1/042_Max_Pooling_2D", "level1/051_Argmax_over_a_dimension")
DEEP = ("010_ResNet101", "018_SqueezeNet", "045_UNetSoftmax")
"""Networks in which PyTorch itself loses too much in 16 bits for some draws: what is declared is the last resort."""
UNDEFINED = (
    "level1/001_Square_matrix_multiplication",
    "level1/040_LayerNorm",
    "level1/091_cumsum_reverse",
    "level1/095_CrossEntropyLoss",
)


def mixed(problem: Problem, precision: Precision, workload: str | None = None, seed: int = 7) -> Chosen:
    size = workload or problem.cheap_workload
    key = InputKey(problem, precision, size, attempts(Distribution.MIXED), seed)
    return choose(key, tensor_specs(problem, size, precision))


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("slug", DEFINED)
def test_some_samples_are_masked_where_that_is_defined(slug: str, precision: Precision) -> None:
    chosen = mixed(problem(slug), precision)
    assert chosen.recipe.masks in MASKS_OF_MIXTURES
    infinite = chosen.drawn.inputs["x"].isinf().flatten(1).any(dim=1)
    assert 0 < int(infinite.sum()) <= len(infinite) / 4


@pytest.mark.parametrize("slug", UNDEFINED)
def test_no_sample_is_masked_where_it_is_not(slug: str) -> None:
    assert mixed(problem(slug), Precision.FP32).recipe.masks is None


@pytest.mark.parametrize("problem", rotating(ALL, 8))
def test_every_floating_input_that_may_change_is_hard_and_the_result_tells_something(problem: Problem) -> None:
    for precision in problem.precisions:
        chosen = mixed(problem, precision)
        recipe, drawn = chosen.recipe, chosen.drawn
        assert chosen.expected is not None
        if problem.slug in DEEP and precision is not Precision.FP32:
            continue
        assert recipe.distribution in (Distribution.MIXED, Distribution.BURST)
        assert informative(chosen.expected, recipe.distribution, infinite=recipe.infinite)
        plain = [name for name in drawn.inputs if not _is_hard(problem, name, drawn, recipe)]
        assert plain == []


def _is_hard(problem: Problem, name: str, drawn: Draw, recipe: Recipe) -> bool:
    """Whether an input is of a mixture, or has a piece, or may not change."""
    tensor = drawn.inputs[name]
    if not tensor.is_floating_point() or tensor.numel() < 64:
        return True
    changes = permitted_perturbation(problem, name, tensor) is PerturbationKind.SHIFT
    leads = drawn.mixed is not None and drawn.mixed.name == name
    return not changes or leads or recipe.accompanied or recipe.distribution is Distribution.BURST


@pytest.mark.parametrize(("slug", "extents"), [(SOFTMAX, {"batch_size": 64, "dim": 500}), (DIVERGENCE, {})])
def test_a_larger_size_needs_one_reference(
    slug: str, extents: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    medium = {**problem(slug).workloads[StandardWorkload.SMALL], **extents}
    judged, made = reduced(slug, tmp_path, medium={name: extent + 1 for name, extent in medium.items()}), []
    small = mixed(judged, Precision.FP16)
    real = choosing.draw

    def counted(reference: object, workload: str, *rest: object) -> Draw:
        made.append(workload)
        return real(reference, workload, *rest)

    monkeypatch.setattr(choosing, "draw", counted)
    large = mixed(judged, Precision.FP16, StandardWorkload.MEDIUM)
    assert made.count(StandardWorkload.MEDIUM) == 1
    assert large.recipe == small.recipe
    assert bool(next(iter(large.drawn.inputs.values())).isinf().any()) is (slug == SOFTMAX)


def test_a_larger_size_goes_on_with_what_is_milder() -> None:
    wanted = recipes(attempts(Distribution.MIXED), Precision.FP32, 0, companions=True)
    masked = Recipe(Distribution.MIXED, 3, accompanied=True, masks=MASKS_OF_MIXTURES[0])
    left = going_on(wanted, masked)
    assert [recipe.masks for recipe in left[:3]] == [*MASKS_OF_MIXTURES, None]
    assert left[2:] == wanted[wanted.index(masked.unmasked) :]
    assert going_on(wanted, wanted[-1]) == wanted, "the last resort of few elements says nothing of many"
    assert going_on(wanted, Recipe(Distribution.MIXED, 99)) == wanted


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_flags_are_all_set_somewhere_in_every_draw_of_long_rows(seed: int, tmp_path: Path) -> None:
    """A row of 32,768 sums to half of what fp16 holds at most, and to all of it where its flags are set."""
    judged = reduced("level1/093_masked_cumsum", tmp_path, medium={"batch_size": 48, "dim": 32768})
    chosen = mixed(judged, Precision.FP16, StandardWorkload.MEDIUM, seed)
    assert chosen.recipe.accompanied
    assert bool(chosen.drawn.inputs["mask"].reshape(-1, 256).all(dim=-1).any())


MASKED_SOFTMAX = """
import torch

SIZES = {"small": {"rows": 32, "columns": 64}}


class Model(torch.nn.Module):
    def forward(self, x, mask):
        return torch.softmax(torch.where(mask, x, -torch.inf), dim=-1)


def get_inputs(size="full"):
    shape = tuple(SIZES[size].values())
    return [torch.randn(shape), torch.rand(shape) < 0.5]


def get_init_inputs(size="full"):
    return []
"""
MASKED_DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, void* mask, int64_t rows, int64_t columns);
static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("mask"), d.size("rows"), d.size("columns"));
}
KB_DRIVER(call)
"""


def test_flags_stay_as_drawn_where_a_run_of_them_leaves_no_result(tmp_path: Path) -> None:
    """A row without a single flag has no softmax; the other input is of a mixture all the same."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "reference.py").write_text(MASKED_SOFTMAX)
    (tmp_path / "own" / "driver.cpp").write_text(MASKED_DRIVER)
    chosen = mixed(load_problem(tmp_path / "own"), Precision.FP32)
    assert (chosen.recipe.distribution, chosen.recipe.accompanied) == (Distribution.MIXED, False)
    assert chosen.drawn.inputs["mask"].any(dim=1).all()


def test_the_same_seed_gives_the_same_set() -> None:
    one, other = (mixed(problem(SOFTMAX), Precision.FP16).drawn.inputs["x"] for _ in range(2))
    assert torch.equal(one.nan_to_num(), other.nan_to_num())


def test_channels_of_a_normalisation_lie_at_levels_of_their_own_in_all_samples() -> None:
    judged, precision = problem("level1/033_BatchNorm"), Precision.FP32
    (undeclared,) = plan_inputs(judged, precision, StandardWorkload.SMALL, 10, 3, other=judged).unseen
    keys = [key for key in undeclared if key.draws[0] is Distribution.LEVELS]
    assert len(keys) == 1
    chosen = choose(keys[0], tensor_specs(judged, StandardWorkload.SMALL, precision))
    x = chosen.drawn.inputs["x"].double()
    means, spreads = x.mean(dim=(2, 3)), x.std(dim=(2, 3))
    assert float(means.std(dim=0).max()) < 0.5 * float(spreads.mean())
    assert float(means.std(dim=1).min()) > 10 * float(spreads.mean())


def test_what_is_no_normalisation_alone_has_no_levels() -> None:
    judged = problem("level1/001_Square_matrix_multiplication")
    (undeclared,) = plan_inputs(judged, Precision.FP16, StandardWorkload.SMALL, 10, 3, other=judged).unseen
    assert all(key.draws[0] is not Distribution.LEVELS for key in undeclared)


@pytest.mark.parametrize("seed", range(3))
def test_some_rows_of_a_mask_are_full_where_means_are_far_from_zero(seed: int) -> None:
    """A kernel with room for most values of a row is wrong there."""
    chosen = mixed(problem("level1/093_masked_cumsum"), Precision.FP16, seed=seed)
    assert (chosen.recipe.distribution, chosen.recipe.accompanied) == (Distribution.MIXED, True)
    share = chosen.drawn.inputs["mask"].double().mean(dim=1)
    assert float(share.max()) == 1.0
    assert float(share.min()) < 0.5
