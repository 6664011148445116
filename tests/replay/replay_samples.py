"""Transitions for tests."""

from __future__ import annotations

from typing import Any

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.problems.problem import Precision
from kernelblaster.replay.transition import Transition


def transition(slot: str = "r0/rollout-0/step-0", *, speedup: float | None = 1.5, **changes: Any) -> Transition:
    """A correct, compared transition; `speedup` None, or another verdict, makes one without a comparison."""
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
        "state": "memory_latency_bound",
        "state_confidence": 0.8,
        "technique": "vectorized_memory_access",
        "verdict": Verdict.CORRECT,
        "reward": 0.0,
        "model": "scripted",
    }
    if speedup is not None and changes.get("verdict", Verdict.CORRECT) is Verdict.CORRECT:
        values |= {"speedup": speedup, "speedup_low": speedup * 0.99, "speedup_high": speedup * 1.01}
        values["decision"] = Decision.FASTER if speedup > 1 else Decision.SLOWER
    return Transition.model_validate(values | changes)
