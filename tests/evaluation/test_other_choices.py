"""Floating-point outputs behind a choice among what is equal up to rounding: any of the choices is right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernelblaster.evaluation.correctness.compare import compare_output, would_be_refused
from kernelblaster.evaluation.correctness.discrete_choices import Choices, Choosing
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.other_choices import OtherChoices
from kernelblaster.evaluation.correctness.pieces import Pieces
from kernelblaster.evaluation.correctness.reference_output import informative
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION, Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.tensors import read_tensor, write_tensor
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem

TOP2 = Path(__file__).parents[1] / "fixtures" / "problems" / "top2"
ROUTER = '''"""Each row goes to the expert of its best score."""

import torch

SIZES = {"small": {"rows": 1025, "experts": 128, "width": 16}}


class Model(torch.nn.Module):
    """Routes."""

    def forward(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """(rows, experts), (experts, width) -> (rows, width)."""
        ROUTE


def get_inputs(size: str = "small") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["rows"], p["experts"]), torch.randn(p["experts"], p["width"])]


def get_init_inputs(size: str = "small") -> list:
    """Arguments of `Model`."""
    return []
'''
DRIVER = """#include <kernelblaster/driver.hpp>

void launch_gpu_implementation(void* output, void* x, void* table, int64_t rows, int64_t experts, int64_t width);

static void call(kb::Harness& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.input("table"), d.size("rows"), d.size("experts"),
                              d.size("width"));
}

KB_HARNESS(call)
"""
BEST = "return table[torch.softmax(x, dim=1).argmax(dim=1)]"
RECTIFIED = "y = x @ table; return torch.where(y > 0, y, 0.0)"


def routed(directory: Path, route: str) -> Problem:
    shutil.copytree(TOP2, directory)
    (directory / "driver.cpp").write_text(DRIVER)
    (directory / "reference.py").write_text(ROUTER.replace("ROUTE", route))
    return load_problem(directory)


def key(problem: Problem, precision: Precision, distribution: Distribution = Distribution.DECLARED) -> InputKey:
    return InputKey(problem, precision, "small", (distribution,), seed=3)


def given_to(drawn: InputSet, name: str) -> torch.Tensor:
    spec = next(spec for spec in drawn.specs if spec.name == name)
    return read_tensor(drawn.files[name], spec).reshape(spec.shape).float()


def test_what_a_router_gives_for_any_of_several_best_is_right(store: InputStore, tmp_path: Path) -> None:
    """Of a thousand rows in bf16 some have best scores that are equal."""
    with store.use(key(routed(tmp_path / "router", BEST), Precision.BF16)) as lent:
        (expected,) = lent.expected.tensors
        x, table = given_to(lent, "x"), given_to(lent, "table")
        assert informative(lent.expected, Distribution.DECLARED)
    first, last = x.argmax(dim=1), x.shape[1] - 1 - x.flip(1).argmax(dim=1)
    equal = (first != last).nonzero().reshape(-1)
    assert 0 < len(equal) < 64
    second = x.topk(2, dim=1).indices[:, 1]
    one_wrong, all_wrong, between = last.clone(), second, table[last].clone()
    one_wrong[0] = second[0]
    between[equal[0]] = (table[first[equal[0]]] + table[last[equal[0]]]) / 2
    for values, passes in (
        (table[first], True),
        (table[last], True),
        (table[one_wrong], False),
        (table[all_wrong], False),
        (between, False),
    ):
        assert would_be_refused(expected, values, 2.0, ACCUMULATION) is not passes
        write_tensor(tmp_path / "output", values.bfloat16())
        assert compare_output(tmp_path / "output", expected, 2.0, ACCUMULATION, 0xFF).passed is passes


def test_inputs_that_all_choices_hang_on_tell_nothing(store: InputStore, tmp_path: Path) -> None:
    """Scores that are all nearly one number: 1 / 128, up to fp32's last digits."""
    problem = routed(tmp_path / "router", BEST.replace("(x, ", "(x * 2.0**-16, "))
    with store.use(key(problem, Precision.FP32, Distribution.TINY)) as lent:
        assert lent.expected.tensors[0].hangs_on_roundings
        assert not informative(lent.expected, Distribution.TINY)


@pytest.mark.parametrize("precision", Precision)
def test_what_does_not_jump_is_granted_nothing(store: InputStore, tmp_path: Path, precision: Precision) -> None:
    """A rectifier chooses, too, and where its input is nearly zero the other choice gives nearly the same."""
    with store.use(key(routed(tmp_path / "rectified", RECTIFIED), precision)) as lent:
        (chosen,) = lent.expected.tensors
    plainly = RECTIFIED.replace("torch.where(y > 0, y, 0.0)", "torch.clamp(y, min=0)")
    with store.use(key(routed(tmp_path / "clamped", plainly), precision)) as lent:
        (clamped,) = lent.expected.tensors
    assert chosen.choices is None
    assert chosen.scale is not None
    assert clamped.scale is not None
    assert torch.equal(chosen.values, clamped.values)
    assert (chosen.scale.by_exponent <= clamped.scale.by_exponent).all()


CHOOSING: dict[str, tuple[bool, Callable[[torch.Tensor], torch.Tensor]]] = {
    "the best of a softmax": (True, lambda x: x[:, torch.softmax(x, 1).argmax(1)]),
    "a mask of a sum": (True, lambda x: x * (x.sum(1, keepdim=True) > 0)),
    "a branch of Python": (True, lambda x: x if x.sum() > 0 else -x),
    "a step": (True, lambda x: torch.round(x / 3)),
    "a step in place": (True, lambda x: (x / 3).floor_()),
    "the best of what is given": (False, lambda x: x[:, x.argmax(1)]),
    "a mask of constants": (False, lambda x: x.exp().masked_fill(torch.ones(8, 8).tril() == 0, 0.0)),
    "the largest of a product": (False, lambda x: (x @ x).max(dim=1).values),
    "a pooling": (False, lambda x: torch.nn.functional.max_pool1d(x @ x, 2)),
    "a rectifier": (False, lambda x: torch.relu(x @ x)),
    "integers": (False, lambda x: (x @ x).argmax(1)),
}


@pytest.mark.parametrize("case", CHOOSING)
def test_choices_among_rounded_values_are_found(case: str) -> None:
    found, forward = CHOOSING[case]
    with torch.no_grad(), Choosing() as choosing:
        forward(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))
    assert choosing.found is found


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x.topk(3, dim=0)[0],
        lambda x: x.sort(dim=1, descending=True)[0],
        lambda x: x.min(dim=1)[0],
        lambda x: x.max(1, keepdim=True)[0],
        lambda x: x.round_(),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: torch.div(x, 0.5, rounding_mode="floor"),
    ],
)
def test_a_run_chooses_as_another_did(forward: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """With the choices of its own values it returns what it would; with those of others, what lies in their places."""
    first, second = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0))
    with Choices() as own:
        plain = forward(first.clone())
    with Choices(own.found) as again:
        assert torch.equal(forward(first.clone()), plain)
    assert not again.astray
    with Choices() as other:
        forward(second.clone())
    assert not own.same_as(other)
    with Choices(other.found):
        assert not torch.equal(forward(first.clone()), plain)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x.topk(3, dim=1),
        lambda x: x.sort(dim=1),
        lambda x: x.max(dim=1),
        lambda x: (x.argmin(dim=1), x.argmin(dim=1)),
        lambda x: (x.max(), x.argmax()),
    ],
)
def test_which_of_equal_values_is_the_best_is_left_to_chance(
    forward: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> None:
    """The values stay what they are."""
    equal = torch.zeros(16, 5)
    plain, indices = forward(equal)[0], set()
    for seed in range(24):
        with Choices(random=torch.Generator().manual_seed(seed)):
            values, chosen = forward(equal)
        assert values.dtype is plain.dtype
        assert torch.equal(values, plain) or not values.is_floating_point()
        indices.add(tuple(chosen.flatten().tolist()))
    assert len(indices) > 12


def test_of_two_equal_values_both_are_found() -> None:
    found = []
    for side in (1, -1):
        with Choices(random=torch.Generator().manual_seed(0), side=side):
            found.append(torch.zeros(64, 2).argmax(dim=1))
    assert torch.equal(found[0], 1 - found[1])


def test_a_run_that_chooses_among_other_things_goes_astray() -> None:
    with Choices() as own:
        torch.zeros(3).argmax(dim=0)
    with Choices(own.found) as other:
        torch.zeros(3, 2).argmax(dim=0)
    assert other.astray


def test_choices_in_pieces_lie_where_the_pieces_have_them() -> None:
    whole = torch.arange(40.0, dtype=torch.float64)
    places = torch.tensor([0, 4, 9, 10, 19, 25, 39])
    choices = OtherChoices(40, places, torch.stack([whole[places], whole[places] + 100]))
    pieces = Pieces(((4, 10), (20, 30), (38, 40)))
    taken = pieces.taken(whole)
    within = choices.taken(pieces)
    assert torch.equal(taken[within.places], whole[torch.tensor([4, 9, 25, 39])])
    got = taken + 99
    nearest = within.nearest(got, taken)
    assert torch.equal((nearest - taken).nonzero().reshape(-1), within.places)
    assert torch.equal(within.nearest(got[6:], taken[6:], start=6), nearest[6:])
