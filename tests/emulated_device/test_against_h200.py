"""Three kernels at full size against what Nsight Compute measured of them on an H200: exact counts, modelled times."""

from __future__ import annotations

import csv
from itertools import dropwhile
from pathlib import Path

import emulated_kernels as kernels
import numpy as np
import pytest
from emulated_bench import Bench, needs_tools

from kernelblaster.devices.base import profile_once
from kernelblaster.devices.metrics import Metric

FIXTURES = Path(__file__).parents[1] / "fixtures" / "ncu"
EXACT = (Metric.GLOBAL_LOAD_REQUESTS, Metric.GLOBAL_LOAD_SECTORS, Metric.GLOBAL_STORE_REQUESTS, Metric.WAVES)
TIMEOUT_S = 280

pytestmark = [pytest.mark.nvcc, pytest.mark.slow, needs_tools]


def measured(kernel: str) -> dict[str, float]:
    """Numeric metrics of one kernel of the captured page."""
    with (FIXTURES / "h200_probe.csv").open(encoding="utf-8", newline="") as file:
        names, _, *rows = dropwhile(lambda row: row[:1] != ["ID"], csv.reader(file))
    row = next(row for row in rows if row[names.index("Kernel Name")].startswith(kernel))
    return {name: float(row[names.index(name)].replace(",", "")) for name in map(str, Metric) if name in names}


@pytest.mark.parametrize("kernel", kernels.PROBE_CALLS)
def test_counts_agree_and_time_is_near(bench: Bench, kernel: str) -> None:
    source = kernels.probe_candidate((FIXTURES / "probe.cu").read_text(encoding="utf-8"), kernel)
    job = bench.job(np.full((8192, 8192), 0.0115, dtype=np.float32))
    found = profile_once(bench.device, bench.build(source), job, timeout_s=TIMEOUT_S).totals
    on_h200 = measured(kernel)
    for metric in EXACT:
        assert found[metric] == pytest.approx(on_h200[metric], rel=1e-3), metric
    assert found[Metric.DRAM_READ] == pytest.approx(on_h200[Metric.DRAM_READ], rel=0.1)
    assert 0.5 < found[Metric.DURATION] / on_h200[Metric.DURATION] < 1.3
