"""Sweeps rank variants in few samples, whatever some of them do to the process that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, FakeSession, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import UNPERTURBED, TimingSample
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import SweptVariant
from kernelblaster.evaluation.sweep import FIRST_SAMPLES, GROWTH, MOST_STARTS, RUNGS
from kernelblaster.evaluation.timing.stopwatch import LEAST_COVER_FILLS, cover_fill_us
from kernelblaster.problems.problem import Precision, StandardWorkload


@pytest.fixture(autouse=True)
def no_spin_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted GPU needs no time to reach its clock."""
    monkeypatch.setattr("kernelblaster.evaluation.sweep.SPIN_UP_S", 0.0)


def swept(device: FakeDevice, store: InputStore, *names: str) -> dict[str, SweptVariant]:
    problem = reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})
    config = EvaluationConfig(input_sets=2, compile_jobs=1)
    judge = Evaluator(device, store, config, StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11)
    found = judge.sweep(problem, [source(name) for name in names])
    assert {"build", "time"} <= set(found.seconds)
    return dict(zip(names, found.variants, strict=True))


def test_the_faster_half_gets_more_samples_and_the_order_is_right(store: InputStore) -> None:
    device = FakeDevice()
    found = swept(device, store, "honest", "quick", "slow", "long", "thirty", "scaled")
    ranked = sorted(found, key=lambda name: found[name].median_us)
    assert ranked[:2] == ["thirty", "quick"]
    assert ranked[-1] == "slow"
    assert found["slow"].samples == FIRST_SAMPLES
    assert found["thirty"].samples == FIRST_SAMPLES * GROWTH ** (RUNGS - 1)
    assert device.sweeps == 1  # one process for all rungs
    assert not any(one.modelled for one in found.values())


def test_variants_are_called_as_timed_candidates_are_with_the_same_values(store: InputStore) -> None:
    """Tensors of the first perturbation lie as they do in files: badly across lines, as no timed call finds them."""
    device = FakeDevice()
    swept(device, store, "honest", "quick", "slow")
    assert UNPERTURBED not in {one for calls in device.perturbations.values() for one in calls}
    fewest = min(len(calls) for calls in device.perturbations.values())
    assert len({tuple(calls[:fewest]) for calls in device.perturbations.values()}) == 1


def test_launches_are_hidden_for_as_long_as_the_slowest_launcher_takes(
    store: InputStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, fills = FakeDevice(), list[int]()
    time_calls = FakeSession.time_calls

    def timed(session: FakeSession, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        fills.append(cover_fills)
        enqueue_us = 1.2 * LEAST_COVER_FILLS * cover_fill_us(device.facts) if session._name == "quick" else 1.0
        return [replace(one, enqueue_us=enqueue_us) for one in time_calls(session, perturbations, cover_fills)]

    monkeypatch.setattr(FakeSession, "time_calls", timed)
    swept(device, store, "honest", "quick", "slow")
    assert fills[0] == LEAST_COVER_FILLS  # until launchers are known
    assert set(fills[-3:]) == {9}


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
