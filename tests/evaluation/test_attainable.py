"""The attainable time: what it counts, and how it lies to times that were measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from budget_support import problem
from fake_device import facts
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.devices.attainable import attainable_rates
from kernelblaster.evaluation.attainable import Limit, attainable, fill
from kernelblaster.evaluation.operations import Operation, operations
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.problems.reference import load_reference
from kernelblaster.records.baselines import BaselineRow

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "docs" / "results" / "h200_baseline.json"


def test_element_wise_problems_are_limited_by_copying_every_byte() -> None:
    relu = problem("level1/019_ReLU")
    extents = relu.workloads[StandardWorkload.SMALL]
    found = attainable(relu, StandardWorkload.SMALL, Precision.FP32, facts())
    rates = attainable_rates(facts())
    moved = 2 * 4 * extents["batch_size"] * extents["dim"]
    assert found.limit is Limit.COPY
    assert found.us == pytest.approx(rates.launch_us + 1e6 * moved / rates.copy_bandwidth)


def test_all_products_of_a_chain_count() -> None:
    mlp = problem("level3/001_MLP")
    fast_memory = facts().model_copy(update={"peak_bandwidth": 1e18})
    found = attainable(mlp, StandardWorkload.SMALL, Precision.FP16, fast_memory)
    assert len(operations(load_reference(mlp), StandardWorkload.SMALL)) == 3
    assert found.limit is Limit.ARITHMETIC


def test_the_waves_of_a_product_follow_its_size() -> None:
    """192 x 192 tiles waste little at 3072 and much at 4096, where 128 x 256 fit; both leave 97 % on 132 SMs."""
    assert fill(Operation(1.0, 3072, 3072), 132) == pytest.approx(256 / (2 * 132), rel=1e-6)
    assert fill(Operation(1.0, 4096, 4096), 132) == pytest.approx(512 / (4 * 132), rel=1e-6)
    assert fill(Operation(1.0, 192 * 19, 192 * 7), 132) < 0.9


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 64), st.integers(1, 200))
def test_fill_is_a_share(rows: int, columns: int, batch: int, sms: int) -> None:
    assert 0 < fill(Operation(1.0, rows, columns, batch), sms) <= 1


def _measured() -> list[BaselineRow]:
    return [BaselineRow.model_validate(row) for row in json.loads(BASELINE.read_text())]


@pytest.mark.parametrize("row", _measured()[::6], ids=lambda row: row.problem)
def test_measured_times_on_an_h200_confirm_it(row: BaselineRow) -> None:
    """The best of all that was measured lies within 0.95 to 1.75 of it: it can be neared, and is not passed."""
    level, number = row.problem.split("/")
    found = next((ROOT / "data" / "kernelbench-cuda" / level).glob(f"{number}_*"))
    expected = attainable(problem(f"{level}/{found.name}"), row.workload, row.precision, row.device)
    best = min(timing.median_us for timing in row.timings.values())
    assert 0.95 < best / expected.us < 1.75
