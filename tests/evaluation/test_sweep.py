"""Sweeps rank variants in few samples, whatever some of them do to the process that they share."""

from __future__ import annotations

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import SweptVariant
from kernelblaster.evaluation.sweep import FIRST_SAMPLES, GROWTH, MOST_STARTS, RUNGS
from kernelblaster.problems.problem import Precision, StandardWorkload


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted GPU needs no time to reach its clock."""
    monkeypatch.setattr("kernelblaster.evaluation.sweep.SPIN_UP_S", 0.0)


def swept(device: FakeDevice, store: InputStore, *names: str) -> dict[str, SweptVariant]:
    problem = reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})
    config = EvaluationConfig(input_sets=2, compile_jobs=1)
    judge = Evaluator(device, store, config, StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11)
    return dict(zip(names, judge.sweep(problem, [source(name) for name in names]), strict=True))


def test_the_faster_half_gets_more_samples_and_the_order_is_right(store: InputStore) -> None:
    device = FakeDevice()
    found = swept(device, store, "honest", "quick", "slow", "long", "thirty", "scaled")
    ranked = sorted(found, key=lambda name: found[name].median_us)
    assert ranked[:2] == ["thirty", "quick"]
    assert ranked[-1] == "slow"
    assert found["slow"].samples == FIRST_SAMPLES
    assert found["thirty"].samples == FIRST_SAMPLES * GROWTH ** (RUNGS - 1)
    assert device.sweeps == RUNGS
    assert not any(one.modelled for one in found.values())


def test_a_variant_that_fails_costs_the_others_nothing(store: InputStore) -> None:
    device = FakeDevice()
    device.refused = {"slow"}
    found = swept(device, store, "crashes", "quick", "slow", "honest", "nonsense")
    assert "illegal memory access" in found["crashes"].reason
    assert "shared memory" in found["slow"].reason
    assert found["nonsense"].reason
    assert found["quick"].median_us < found["honest"].median_us
    assert all((one.median_us is None) == bool(one.reason) for one in found.values())


def test_processes_that_die_are_started_a_bounded_number_of_times(store: InputStore) -> None:
    device = FakeDevice()
    found = swept(device, store, "crashes", "hangs", "crashes_when_timed", "crashes", "crashes", "quick")
    assert device.sweeps == MOST_STARTS
    assert all(one.reason for one in found.values())


def test_a_modelled_variant_is_sampled_once(store: InputStore) -> None:
    device = FakeDevice(DeviceKind.EMULATED)
    found = swept(device, store, "honest", "quick")
    assert {one.samples for one in found.values()} == {1}
    assert all(one.modelled for one in found.values())
    assert device.sweeps == 1


def test_a_problem_that_judges_itself_is_not_swept(store: InputStore) -> None:
    import dataclasses

    problem = reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})
    judge = Evaluator(
        FakeDevice(), store, EvaluationConfig(), StandardWorkload.MEDIUM, precision=Precision.FP32, seed=1
    )
    weak = dataclasses.replace(problem, weakly_verified=True)
    with pytest.raises(UsageError):
        judge.sweep(weak, [source("quick")])
