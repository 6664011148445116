"""Small documents, contexts and transitions for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals
from kernelblaster.evaluation.results import Decision, Timing, Verdict
from kernelblaster.knowledge.amend import count_success
from kernelblaster.knowledge.credit import credits, family_of, gain_of
from kernelblaster.knowledge.decisions import SelectionContext
from kernelblaster.knowledge.schema import Cell, KnowledgeDocument, StatisticsRow, Sums
from kernelblaster.knowledge.statistics import add, cell_of, merge_rows, sums_of, with_credit
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision
from kernelblaster.replay.transition import Transition

DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


def technique(p_correct: float = 0.7, mean_log_gain: float = 0.1, **applicability: Any) -> dict[str, Any]:
    return {
        "category": "test",
        "summary": "does something",
        "how_to": ["do it"],
        "applicability": applicability,
        "prior": {"p_correct": p_correct, "mean_log_gain": mean_log_gain},
    }


def document(**changes: Any) -> KnowledgeDocument:
    """Two states, four techniques."""
    content = {
        "format": "kernelblaster-knowledge-3",
        "fallback_state": "slow",
        "states": {
            "busy": {
                "group": "memory",
                "primary_bottleneck": "the bus",
                "rules": [
                    {
                        "id": "busy.dram",
                        "when": {"metric": DRAM, "op": ">=", "value": 75, "bounds": [60, 90]},
                        "confidence": 0.9,
                        "because": "the bus is full",
                    }
                ],
                "techniques": ["widen", "fuse", "narrow"],
            },
            "slow": {
                "group": "overhead",
                "primary_bottleneck": "unknown",
                "rules": [],
                "techniques": ["fuse", "free_form"],
            },
        },
        "techniques": {
            "widen": technique(),
            "fuse": technique(),
            "narrow": technique(),
            "free_form": technique(),
        },
    }
    return KnowledgeDocument.model_validate(content | changes)


def context(**changes: Any) -> SelectionContext:
    values: dict[str, Any] = {
        "arch": "sm_90",
        "device_kind": DeviceKind.CUDA,
        "op_family": OpFamily.SOFTMAX,
        "precision": Precision.FP16,
    }
    return SelectionContext(**(values | changes))


def row(technique: str, sums: Sums, *, run: str = "run-a", **cell: Any) -> StatisticsRow:
    values = {
        "state": "busy",
        "arch": "sm_90",
        "device_kind": DeviceKind.CUDA,
        "op_family": OpFamily.SOFTMAX,
        "precision": Precision.FP16,
    }
    return StatisticsRow(run=run, cell=Cell(technique=technique, **(values | cell)), sums=sums)


def gains(*logs: float, failed: int = 0) -> Sums:
    """Sums of compared attempts with these log speed-ups, and the same credit, and of failed ones."""
    return Sums(
        attempts=len(logs) + failed,
        failures={Verdict.WRONG_VALUES: failed} if failed else {},
        n=len(logs),
        sum_log=sum(logs),
        sum_sq_log=sum(log * log for log in logs),
        best=max(logs, default=None),
        compared=len(logs),
        sum_gain=sum(logs),
        sum_sq_gain=sum(log * log for log in logs),
    )


def transition(slot: str = "step-0", *, speedup: float | None = 1.5, **changes: Any) -> Transition:
    """A correct, compared transition of technique `widen` in state `busy`."""
    values: dict[str, Any] = {
        "run": "run-a",
        "slot": slot,
        "problem": "level1/023",
        "op_family": "softmax",
        "precision": Precision.FP16,
        "arch": "sm_90",
        "device_kind": DeviceKind.CUDA,
        "rollout": 0,
        "step": 0,
        "parent_sha256": "a" * 64,
        "candidate_sha256": "b" * 64,
        "state": "busy",
        "state_confidence": 0.8,
        "technique": "widen",
        "verdict": Verdict.CORRECT,
        "reward": 0.0,
        "model": "scripted",
    }
    if speedup is not None and changes.get("verdict", Verdict.CORRECT) is Verdict.CORRECT:
        values |= {"speedup": speedup, "speedup_low": speedup * 0.99, "speedup_high": speedup * 1.01}
        values["decision"] = Decision.FASTER if speedup > 1 else Decision.SLOWER
    return Transition.model_validate(values | changes)


def recorded(known: KnowledgeDocument, *made: Transition) -> KnowledgeDocument:
    """A document with transitions counted, the plain way: what the tables of an experience must come to."""
    earned = _earned(made)
    rows = {(row.run, row.cell): row for row in known.statistics}
    for one in made:
        key = (one.run, cell_of(one))
        before = rows[key].sums if key in rows else Sums()
        sums = with_credit(add(before, sums_of(one)), None, earned.get(one.digest))
        rows[key] = StatisticsRow(run=key[0], cell=key[1], sums=sums)
        known = count_success(known, one)
    return known.model_copy(update={"statistics": merge_rows(rows.values(), ())})


def _earned(made: Sequence[Transition]) -> dict[str, float]:
    """Credit of each transition among its siblings, by digest."""
    families: dict[tuple[str, str], dict[str, float]] = {}
    for one in made:
        gain = gain_of(one)
        if gain is not None:
            families.setdefault((one.run, family_of(one)), {})[one.digest] = gain
    return {digest: credit for gains in families.values() for digest, credit in credits(gains).items()}


def facts() -> DeviceFacts:
    return DeviceFacts(
        kind=DeviceKind.CUDA,
        name="test GPU",
        arch="sm_90",
        compile_arch="sm_90a",
        sm_count=132,
        clock_mhz=1980,
        memory_bytes=80 << 30,
        l2_bytes=50 << 20,
        shared_per_block=227 << 10,
        shared_per_sm=228 << 10,
        registers_per_sm=65536,
        max_warps_per_sm=64,
        peak_bandwidth=4.3e12,
        peak_flops={"fp16": 7.9e14},
        peak_source="test",
    )


def timed(us: float = 100.0, headroom: float | None = None) -> Timing:
    """A measured call, `headroom` times the attainable time."""
    return Timing(
        median_us=us, low_us=us, high_us=us, iqr_us=0, samples=30, floor_us=None, floor_fraction=None, modelled=False,
        attainable_us=None if headroom is None else us / headroom,
    )  # fmt: skip


def profile(*kernels: dict[str, float], source: ProfileSource = ProfileSource.NCU) -> Profile:
    profiled = [
        KernelProfile(name=f"k{index}", grid=(1000, 1, 1), block=(256, 1, 1), metrics=metrics)
        for index, metrics in enumerate(kernels)
    ]
    return Profile(source=source, kernels=profiled, totals=totals(profiled))
