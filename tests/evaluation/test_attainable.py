"""The attainable time: what it counts, and how it lies to times that were measured."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch
from budget_support import problem
from fake_device import facts
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import RNNBase
from torch.utils.flop_counter import FlopCounterMode

from kernelblaster.devices.attainable import attainable_rates
from kernelblaster.evaluation.attainable import Limit, attainable, fill
from kernelblaster.evaluation.operations import Operation, operations
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, read_times
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.problems.reference import load_reference
from kernelblaster.problems.tags import Tag
from kernelblaster.records.baselines import BaselineRow

ROOT = Path(__file__).parents[2]
BASELINE = ROOT / "docs" / "results" / "h200_baseline.json"
H200 = BaselineRow.model_validate(json.loads(BASELINE.read_text())[0]).device
NEAREST, OTHERS = 8, 4
CONVOLUTIONS = {Tag.CONV, Tag.CONV_TRANSPOSE, Tag.DEPTHWISE, Tag.NETWORK}


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


class Branches(torch.nn.Module):
    """Two products of x, one of their sum, written through a view into a buffer that another one reads."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(8, 8)) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, third, last = self.weights
        kept = x.new_empty(2, *x.shape)
        kept[0] = (torch.relu(x @ first) + x @ second) @ third
        return kept.transpose(1, 2)[0].transpose(0, 1) @ last


def test_products_know_how_many_they_wait_for(tmp_path: Path) -> None:
    (tmp_path / "reference.py").write_text(
        "import torch\n" + inspect.getsource(Branches).replace("Branches", "Model")
        + '''SIZES = {"small": {"n": 8}}
def get_inputs(size="small"):
    return [torch.ones(8, 8)]
def get_init_inputs(size="small"):
    return []
'''
    )  # fmt: skip
    branches = dataclasses.replace(problem("level1/019_ReLU"), directory=tmp_path)
    assert [one.depth for one in operations(load_reference(branches), StandardWorkload.SMALL)] == [1, 1, 2, 3]


@pytest.mark.parametrize("name", ["level3/035_LSTM", "level3/038_LSTMBidirectional", "level3/039_GRU"])
def test_recurrent_layers_that_a_reference_leaves_out_are_counted_as_torch_would(name: str) -> None:
    recurrent = problem(name)
    found = operations(load_reference(recurrent), StandardWorkload.SMALL)
    sizes = recurrent.workloads[StandardWorkload.SMALL]
    reference = load_reference(recurrent)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        layers = next(one for one in reference.model(StandardWorkload.SMALL).modules() if isinstance(one, RNNBase))
        (x, *_) = reference.tensors(StandardWorkload.SMALL).values()
        layers.to("meta")(x.to("meta"))
    assert sum(one.flops for one in found) == counted.get_total_flops()
    both = 2 if layers.bidirectional else 1
    assert len(found) == 2 * both * layers.num_layers
    chain = (
        sizes["sequence_length"] * layers.num_layers if both == 2 else sizes["sequence_length"] + layers.num_layers - 1
    )
    assert max(one.depth for one in found) == chain


def test_a_chain_of_small_products_takes_its_steps() -> None:
    recurrent = problem("level3/034_VanillaRNNHidden")
    found = attainable(recurrent, StandardWorkload.FULL, Precision.FP16, H200)
    steps = recurrent.workloads[StandardWorkload.FULL]["sequence_length"]
    rates = attainable_rates(H200)
    assert found.limit is Limit.CHAIN
    assert rates.step_us * (steps - 1) < found.us < 2 * rates.step_us * steps


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


def _recorded() -> list[Any]:
    """PyTorch's times that ship; by default those that came nearest to the estimate of their day, and some others."""
    rows = read_times(sorted((ROOT / "data" / "baselines" / "h200").glob("*.jsonl"))).values()
    timed = sorted(
        (row for row in rows if row.best and not _in_tf32(row)),
        key=lambda row: row.best[1].us / (row.attainable_us or math.inf),
    )
    today = random.Random(date.today().toordinal()).sample(range(NEAREST, len(timed)), OTHERS)
    return [
        pytest.param(
            row, id=f"{row.problem}-{row.precision}", marks=[] if i < NEAREST or i in today else pytest.mark.slow
        )
        for i, row in enumerate(timed)
    ]


def _in_tf32(row: PytorchTimes) -> bool:
    """Whether cuDNN multiplied in TF32 what was given in fp32: three such products reach what is asked for."""
    tags = find_problem(row.problem, ROOT / "data" / "kernelbench-cuda").tags
    allowed = row.settings is not None and row.settings.tf32_cudnn
    return allowed and row.precision is Precision.FP32 and not CONVOLUTIONS.isdisjoint(tags)


@pytest.mark.parametrize("row", _recorded())
def test_nothing_is_expected_to_be_slower_than_pytorch_was(row: PytorchTimes) -> None:
    known = find_problem(row.problem, ROOT / "data" / "kernelbench-cuda")
    expected = attainable(known, row.workload, row.precision, H200)
    assert row.best is not None
    assert expected.us <= row.best[1].us
