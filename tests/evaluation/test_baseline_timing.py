"""Start and final kernels of a baseline are timed on changing values and judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, source

from kernelblaster.devices.base import UNPERTURBED
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.records.baselines import BaselineRow
from kernelblaster.runs.pytorch_baseline import FINAL, START, BaselinePlan, measure_baseline


@pytest.fixture
def relu(tmp_path: Path) -> Problem:
    return reduced(RELU_SLUG, tmp_path / "reduced")


def measure(device: FakeDevice, store: InputStore, relu: Problem, final: str) -> BaselineRow:
    kernels = {START: source("honest"), FINAL: source(final)}
    plan = BaselinePlan(kernels=kernels, modes=(), seconds=0.05)
    return measure_baseline(relu, Precision.FP32, StandardWorkload.SMALL, device, store, plan)


def test_both_kernels_see_the_same_values_and_none_twice(store: InputStore, relu: Problem) -> None:
    device = FakeDevice()
    row = measure(device, store, relu, "quick")
    assert row.failures == {}
    assert row.final_against[START].speedup == pytest.approx(1.25, rel=0.01)
    ours, theirs = device.perturbations["quick"], device.perturbations["honest"]
    assert ours == theirs
    assert len(set(ours)) == len(ours)
    assert UNPERTURBED not in ours
    assert set(row.walls) == {START, FINAL}
    assert row.walls[FINAL].low_us <= row.walls[FINAL].median_us <= row.walls[FINAL].high_us
    assert row.cover is not None
    assert row.cover.exposed == {START: 0, FINAL: 0}
    assert row.settings is not None
    assert BaselineRow.model_validate_json(row.model_dump_json()) == row


@pytest.mark.parametrize("final", ["replays_when_timed", "skips_late", "scaled"])
def test_a_final_kernel_that_cheats_or_is_wrong_has_no_time(store: InputStore, relu: Problem, final: str) -> None:
    row = measure(FakeDevice(), store, relu, final)
    assert FINAL in row.failures
    assert list(row.timings) == [START]
    assert row.final_against == {}


def test_nothing_is_timed_on_a_modelled_device(store: InputStore, relu: Problem) -> None:
    with pytest.raises(UsageError, match="real GPU"):
        measure(FakeDevice(DeviceKind.EMULATED), store, relu, "quick")
