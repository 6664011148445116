"""Some conformance cases on the emulated device against what an H200 did: outputs, counters, modelled time.

`python benchmarks/ptxemu/emulator_calibration.py` does the same for all cases.
"""

from __future__ import annotations

import random
import shutil
import statistics
from datetime import date

import pytest
from conformance_compare import COUNTERS, Comparison, Counter, compare, difference
from conformance_emulated import Emulator
from conformance_suite import UNFITTED, UNPROFILED, Half, comparable, halves, pairs, programs, read_capture

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import Profile, ProfileSource
from kernelblaster.errors import MachineError
from ptxemu.model.architecture import gpu_model

CASES = {
    "transposes": ("transpose_conflicts", "transpose_padded", "transpose_half_pairs"),
    "copies": ("copy_float4", "copy_misaligned", "copy_one_block_per_sm", "gather_stride_9"),
    "products": ("gemv_row_thread", "gemv_half8"),
    "pipes": ("pipe_half_fma",),
    "atomics": ("atomic_float_one_word", "atomic_int_random"),
}
EXACT = (
    Metric.GLOBAL_LOAD_REQUESTS,
    Metric.GLOBAL_LOAD_SECTORS,
    Metric.GLOBAL_STORE_REQUESTS,
    Metric.GLOBAL_STORE_SECTORS,
)
NEAR = {
    Metric.SHARED_WAVEFRONTS: 0.1,
    Metric.INSTRUCTIONS: 0.01,
    Metric.DRAM_READ: 0.15,
    Metric.DRAM_WRITE: 0.35,
    Metric.L2_READ_SECTORS: 0.1,
    Metric.L2_WRITE_SECTORS: 0.1,
}
"""Largest relative error of any of the cases; the page has the medians of all."""


def tools_missing() -> bool:
    try:
        return Toolchain.find().nvcc is None or shutil.which("g++") is None
    except MachineError:
        return True


@pytest.fixture(scope="module")
def compared(request: pytest.FixtureRequest) -> dict[str, Comparison]:
    """The chosen cases of two programs, other ones each day, or with --all of every one, run here and now."""
    today = random.Random(date.today().toordinal()).sample(list(CASES), 2)
    chosen = list(CASES) if request.config.getoption("--all") else today
    real = {case.run.case: case for case in comparable(read_capture())}
    gpu, emulator = gpu_model("h200"), Emulator(keep=False)
    emulated = [case for program in chosen for case in emulator.cases(program, CASES[program])]
    return {case.run.case: compare(real[case.run.case], case, gpu) for case in emulated}


needs_tools = pytest.mark.skipif(tools_missing(), reason="nvcc or g++ is missing")


@pytest.mark.nvcc
@needs_tools
class TestSubset:
    """The chosen cases."""

    def test_outputs_agree(self, compared: dict[str, Comparison]) -> None:
        assert {name: one.wrong for name, one in compared.items() if one.wrong} == {}

    @pytest.mark.parametrize("metric", EXACT)
    def test_requests_and_sectors_are_exact(self, compared: dict[str, Comparison], metric: Metric) -> None:
        assert all(abs(one.error(Counter(metric, 0, 1)) or 0) < 1e-3 for one in compared.values())

    @pytest.mark.parametrize(("metric", "most"), NEAR.items())
    def test_modelled_counters_are_near(self, compared: dict[str, Comparison], metric: Metric, most: float) -> None:
        floor = 2e6 if "dram" in metric else 1e4
        errors = {name: one.error(Counter(metric, 0, floor)) for name, one in compared.items()}
        assert {name: error for name, error in errors.items() if error is not None and abs(error) > most} == {}

    def test_l1_hit_rates_are_near(self, compared: dict[str, Comparison]) -> None:
        """Stores hit lines that are there, as those of half a line or across two do."""
        away = {name: one.points(Metric.L1_HIT_RATE) or 0.0 for name, one in compared.items()}
        assert {name: points for name, points in away.items() if abs(points) > 15} == {}

    def test_times_are_near(self, compared: dict[str, Comparison]) -> None:
        factors = {name: one.emulated_us / one.real_us for name, one in compared.items()}
        assert {name: factor for name, factor in factors.items() if not 0.65 < factor < 1.5} == {}


def test_capture_has_every_case_of_every_pair() -> None:
    captured = read_capture()
    names = {case.run.case for case in captured.cases}
    assert {case.program for case in captured.cases} == set(programs())
    assert {name for pair in pairs() for name in (pair.parent, pair.child)} <= names
    assert {case.program for case in captured.cases if not case.kernels} == UNPROFILED
    assert {f"profiling {name}: no time left" for name in UNPROFILED} <= set(captured.failures)
    assert all(one.endswith(": no time left") for one in captured.failures)


def test_a_case_without_a_profile_has_times_and_outputs_to_compare_alone() -> None:
    case = next(one for one in read_capture().cases if one.program in UNPROFILED)
    empty = Profile(source=ProfileSource.NCU, kernels=[], totals={})
    counted = Profile(
        source=ProfileSource.EMULATED, kernels=[], totals={Metric.INSTRUCTIONS: 5.0, Metric.L1_HIT_RATE: 1.0}
    )
    found = Comparison(case.run.case, empty, counted, case.run.times_us["cold"].median, 1.0, 1, 1, ())
    assert [found.error(one) for one in COUNTERS] == [None] * len(COUNTERS)
    assert found.points(Metric.L1_HIT_RATE) is None
    assert found.real_us > 1


def test_halves_keep_pairs_together() -> None:
    half = halves(case.run.case for case in read_capture().cases if case.program not in UNFITTED)
    assert all(half[pair.parent] is half[pair.child] for pair in pairs())
    assert min(sum(1 for one in half.values() if one is wanted) for wanted in Half) >= 60


def test_an_output_beyond_its_bound_is_noticed() -> None:
    case = next(one for one in read_capture().cases if one.run.outputs[0].ulps > 0)
    real = case.run.outputs[0]
    far = float(real.samples[7]) + 2 * real.ulps * 2.0**-23 * max(
        abs(float(real.samples[7])), float(real.mean_magnitude)
    )
    near, wrong = (
        real.model_copy(update={"hash": "0", "samples": [*real.samples[:7], value, *real.samples[8:]]})
        for value in (real.samples[7], far)
    )
    assert difference(real, near) is None
    assert difference(real, wrong) is not None
    assert difference(real.model_copy(update={"ulps": 0.0}), near) is not None


def test_times_of_a_later_session_are_less_its_lag() -> None:
    capture = read_capture()
    later = capture.later[0]
    raw = {case.run.case: case.run.times_us["cold"].median for case in capture.cases}
    shifted = {case.run.case: case.run.times_us["cold"].median for case in comparable(capture)}
    lags = {raw[case.run.case] - shifted[case.run.case] for case in capture.cases if case.program in later.programs}
    again = [case.run.times_us["cold"].median - raw[case.run.case] for case in later.again]
    assert {round(lag, 6) for lag in lags} == {round(statistics.median(again), 6)}
    assert all(raw[name] == shifted[name] for name in ("copy_float4", "gemm_naive"))
