"""Summaries of runs that never happened."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.results import Comparison, Decision, Timing
from kernelblaster.problems.problem import Precision
from kernelblaster.records.summary import ProblemSummary, RunSummary, Spending

FACTS = DeviceFacts(
    kind=DeviceKind.EMULATED, name="test", arch="sm_90", compile_arch="sm_90a", sm_count=132, clock_mhz=1980,
    memory_bytes=1 << 37, l2_bytes=60 << 20, shared_per_block=227 << 10, shared_per_sm=228 << 10,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4.3e12, peak_flops={"fp32": 6.7e13}, peak_source="test",
)  # fmt: skip


def timing(us: float) -> Timing:
    return Timing(
        median_us=us, low_us=us, high_us=us, iqr_us=0, samples=1, floor_us=1, floor_fraction=1 / us, modelled=True
    )


def row(status: OutcomeStatus, speedup: float | None = None) -> ProblemSummary:
    comparison = None
    if speedup is not None:
        comparison = Comparison(
            speedup=speedup, low=speedup, high=speedup, decision=Decision.FASTER, threshold=0.01,
            baseline=timing(100), candidate=timing(100 / speedup),
        )  # fmt: skip
    return ProblemSummary(problem="level1/023", name="Softmax", status=status, comparison=comparison, directory=Path())


def summary(*rows: ProblemSummary) -> RunSummary:
    return RunSummary(
        run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="recorded", problems=list(rows),
        spending=Spending(), knowledge_base=Path("kb.json"), directory=Path(), seconds=1,
    )  # fmt: skip
