"""Which values change between timed calls, and that a stale result would show."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from budget_support import RELU_SLUG, problem, reduced, tensors
from fake_device import facts
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.devices.base import UNPERTURBED, PerturbationKind, TimingSample
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.correctness import input_store, reference_output
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.drawing import permitted_perturbation, perturbation_of
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.perturbations import InspectedSession, apply_perturbation, derived_perturbation
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.integrity import timed_checks as module
from kernelblaster.evaluation.integrity.timed_checks import TimedChecks, choose_checks
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload, ValueRange

CROSS_ENTROPY = "level1/095_CrossEntropyLoss"


@pytest.fixture
def relu(tmp_path: Path) -> Problem:
    return reduced(RELU_SLUG, tmp_path / "reduced")


def timed(problem: Problem, precision: Precision = Precision.FP16) -> InputKey:
    return plan_inputs(problem, precision, StandardWorkload.SMALL, 1, seed=5).timed


@given(st.integers(1, 2**63), st.sampled_from([torch.float16, torch.bfloat16, torch.float32]), st.integers(1, 5000))
@settings(max_examples=60, deadline=None)
def test_a_shift_keeps_all_values_but_for_halving(perturbation: int, dtype: torch.dtype, count: int) -> None:
    values = (1 + torch.arange(count) % 64 / 64).to(dtype)
    changed = apply_perturbation(values, PerturbationKind.SHIFT, 2, perturbation)
    restored = torch.where(changed < 1, 2 * changed, changed)
    assert changed.dtype is dtype
    assert torch.equal(restored.sort().values, values.sort().values)


@given(st.integers(1, 2**63), st.integers(1, 2**63))
def test_variants_change_values_differently(one: int, other: int) -> None:
    values = torch.arange(10_000, dtype=torch.float32)
    first, second = (
        apply_perturbation(values, PerturbationKind.SHIFT, 1, perturbation) for perturbation in (one, other)
    )
    assert torch.equal(first, second) == (one == other)


def test_only_what_has_no_structure_is_rotated() -> None:
    torch.manual_seed(1)
    assert perturbation_of(torch.randn(64, 64)) is PerturbationKind.SHIFT
    assert perturbation_of(torch.randn(64, 64).tril()) is PerturbationKind.SCALE
    symmetric = torch.randn(64, 64)
    assert perturbation_of(symmetric + symmetric.T) is PerturbationKind.SCALE
    assert perturbation_of(torch.randint(0, 9, (64, 64))) is PerturbationKind.ROTATE
    assert perturbation_of(torch.rand(64, 64) < 0.5) is PerturbationKind.ROTATE
    for ordered in (torch.arange(64), torch.ones(64, 64).tril().bool(), torch.ones(8, 64).bool(), torch.tensor(3)):
        assert perturbation_of(ordered) is PerturbationKind.FIXED
    assert perturbation_of(torch.randint(0, 2, (64, 64)).float()) is PerturbationKind.FIXED
    assert perturbation_of(torch.tensor(3.0)) is PerturbationKind.FIXED


def test_what_a_problem_declares_goes_before_what_values_show(relu: Problem) -> None:
    declared = dataclasses.replace(relu, ranges={"keys": ValueRange(-3, 9)}, kept=frozenset({"tree", "links"}))
    keys, tree = torch.randint(-3, 10, (64,), generator=torch.Generator().manual_seed(1)), torch.arange(64.0)
    assert permitted_perturbation(declared, "keys", keys.sort().values) is PerturbationKind.MIRROR
    assert permitted_perturbation(declared, "tree", tree) is PerturbationKind.SCALE
    assert permitted_perturbation(declared, "links", keys) is PerturbationKind.FIXED
    assert permitted_perturbation(declared, "other", keys) is perturbation_of(keys)


def test_what_is_fixed_or_as_drawn_stays_and_a_scale_holds_for_all() -> None:
    values = torch.randn(100)
    assert torch.equal(apply_perturbation(values, PerturbationKind.FIXED, 0, 7), values)
    assert torch.equal(apply_perturbation(values, PerturbationKind.SHIFT, 0, UNPERTURBED), values)
    seen = {
        bool(torch.equal(apply_perturbation(values, PerturbationKind.SCALE, 0, v), values * 0.5)) for v in range(1, 40)
    }
    assert seen == {True, False}


@pytest.mark.parametrize("slug", [RELU_SLUG, CROSS_ENTROPY])
def test_a_stale_result_would_show_even_where_it_is_a_mean(store: InputStore, slug: str) -> None:
    found = choose_checks(store, timed(problem(slug)), facts(), 1, 2.0)
    assert len(set(found.perturbations)) == 3
    assert found.notes == ()
    assert found.changing


def test_a_mixture_changes_between_calls_whichever_samples_come_first(store: InputStore) -> None:
    """In bf16 samples that are masked or lie far from zero have few different values, as labels have."""
    pool = problem("level1/042_Max_Pooling_2D")
    for seed in range(8):
        key = plan_inputs(pool, Precision.BF16, StandardWorkload.SMALL, 1, seed).timed
        with store.use(key) as drawn:
            assert drawn.perturbation_kinds == {"x": PerturbationKind.SHIFT}


def test_a_modelled_device_has_one_call_to_judge(store: InputStore, relu: Problem) -> None:
    assert len(choose_checks(store, timed(relu), facts(DeviceKind.EMULATED), 1, 2.0).perturbations) == 1


def test_large_references_are_judged_in_pieces(tmp_path: Path, relu: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_store, "LARGE_REFERENCE", 100)
    monkeypatch.setattr(reference_output, "BYTES", 40_000)
    with InputStore(tmp_path) as store:
        found = choose_checks(store, timed(relu), facts(), 1, 2.0)
        assert len(found.perturbations) == 3
        assert found.notes == ()
        places = []
        for perturbation in found.perturbations:
            with store.use(dataclasses.replace(timed(relu), perturbation=perturbation)) as drawn:
                (expected,) = drawn.expected.tensors
                assert expected.pieces is not None
                assert expected.values.numel() == expected.pieces.elements < expected.spec.elements
                places.append(expected.pieces.spans)
        assert len(set(places)) == 3


def test_one_call_is_judged_where_outputs_of_more_have_no_room(
    store: InputStore, relu: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    found = choose_checks(store, timed(relu), facts(), 1, 2.0)
    assert len(found.perturbations) == 1
    assert any("no room" in note for note in found.notes)


def test_secrets_choose_the_variants(store: InputStore, relu: Problem) -> None:
    chosen = [choose_checks(store, timed(relu), facts(), secret, 2.0).perturbations for secret in (1, 1, 2)]
    assert chosen[0] == chosen[1]
    assert set(chosen[0]).isdisjoint(chosen[2])
    assert derived_perturbation(1, "a") != derived_perturbation(1, "b")


def test_a_result_that_hardly_changes_is_told(
    store: InputStore, relu: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    unhindered = choose_checks(store, timed(relu), facts(), 1, 2.0)
    monkeypatch.setattr("kernelblaster.evaluation.correctness.compare.tells_apart", lambda *_: False)
    found = choose_checks(store, timed(relu), facts(), 1, 2.0)
    assert len(found.perturbations) == 3
    assert len(found.notes) == 1 + len(unhindered.notes)


def test_the_reference_of_a_variant_is_that_of_the_changed_values(store: InputStore, relu: Problem) -> None:
    key = timed(relu)
    with store.use(key) as base, store.use(dataclasses.replace(key, perturbation=99)) as varied:
        (x,) = tensors(base)
        place = next(i for i, spec in enumerate(base.specs) if spec.name == "x")
        changed = apply_perturbation(x.half(), base.perturbation_kinds["x"], place, 99).double()
        assert torch.equal(varied.expected["output"].values.double(), changed.clamp(min=0))
        assert not torch.equal(varied.expected["output"].values, base.expected["output"].values)
        assert varied.files == {}
        assert varied.file_bytes == 0


class Kept:
    """Timed calls of which only the perturbations are kept."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def look(self, perturbation: int) -> None:
        self.seen.append(perturbation)


@pytest.mark.parametrize("length", [1, 5])
def test_outputs_of_the_last_judged_call_are_kept_when_all_is_timed(length: int) -> None:
    calls = Kept()
    looks = TimedChecks((11, 12, 13), changing=True).looks(calls)
    session = InspectedSession(lambda given, fills: [TimingSample(1.0, 1.0)] * len(given), looks, (11, 12, 13))
    looks.schedule.begin(3 * length)
    for _ in range(3):
        session.time_calls(looks.schedule.draw(length))
    assert sorted(calls.seen) == [11, 12]
    while visit := looks.schedule.last_visit(length):
        session.time_calls(visit)
    assert sorted(calls.seen) == [11, 12]
    looks.finish()
    looks.finish()
    assert calls.seen[-1] == 13
    assert len(calls.seen) == 3


def test_where_values_do_not_change_the_last_call_is_judged() -> None:
    calls = Kept()
    TimedChecks((), changing=False).looks(calls).finish()
    assert calls.seen == [UNPERTURBED]
