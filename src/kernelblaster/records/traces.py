"""Evaluations as traces of the exchange formats.

A time that a model of a GPU gave is never exported as one that was measured: it stays out, or, where it is asked for,
it stands under hardware that is marked as emulated.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.problems.interchange.trace import (
    Trace,
    TraceCorrectness,
    TraceEnvironment,
    TraceEvaluation,
    TracePerformance,
)
from kernelblaster.problems.workload import Workload
from kernelblaster.version import __version__

_STATUS = {
    Verdict.CORRECT: "PASSED",
    Verdict.COMPILE_ERROR: "COMPILE_ERROR",
    Verdict.LOAD_ERROR: "COMPILE_ERROR",
    Verdict.REWARD_HACK: "RUNTIME_ERROR",
    Verdict.RUNTIME_ERROR: "RUNTIME_ERROR",
    Verdict.SANITIZER_ERROR: "RUNTIME_ERROR",
    Verdict.TIMEOUT: "TIMEOUT",
    Verdict.WRONG_SHAPE: "INCORRECT_SHAPE",
    Verdict.WRONG_VALUES: "INCORRECT_NUMERICAL",
    Verdict.NONDETERMINISTIC: "INCORRECT_NUMERICAL",
    Verdict.INPUT_MUTATED: "INCORRECT_NUMERICAL",
}
"""`NOT_EMULATABLE` and `BUILT` say nothing of a kernel's results, and are no status."""
_EMULATED = "emulated"
_COMPARED = ("PASSED", "INCORRECT_NUMERICAL")


def trace_of(
    evaluation: Evaluation, workload: Workload, definition: str, solution: str, at: float, *, modelled_times: bool
) -> Trace | None:
    """An evaluation as a trace; None for one that says nothing of the kernel.

    Args:
        evaluation: of the solution, at the extents of `workload`.
        workload: what was timed.
        definition: name of what is computed.
        solution: name of the kernel.
        at: when it was evaluated, Unix time in seconds.
        modelled_times: export times of the emulated device, too.
    """
    status = _STATUS.get(evaluation.verdict)
    if status is None:
        return None
    timing, modelled = evaluation.timing, evaluation.timing is not None and evaluation.timing.modelled
    timed = status == "PASSED" and timing is not None and (modelled_times or not modelled)
    unmarked = evaluation.device is DeviceKind.EMULATED and _EMULATED not in evaluation.device_name
    made: dict[str, Any] = {
        "status": status,
        "environment": TraceEnvironment(
            hardware=f"{evaluation.device_name} ({_EMULATED})" if unmarked else evaluation.device_name,
            libs={"kernelblaster": __version__},
        ),
        "timestamp": datetime.fromtimestamp(at, UTC).isoformat(),
        "log": "\n".join(part for part in (evaluation.reason, evaluation.log) if part),
    }
    if status in _COMPARED:
        made["correctness"] = _correctness(evaluation, modelled=modelled)
    if timed and timing is not None:
        made["performance"] = TracePerformance(latency_ms=timing.median_us / 1000.0)
    return Trace(
        definition=definition, workload=workload, solution=solution, evaluation=TraceEvaluation.model_validate(made)
    )


def _correctness(evaluation: Evaluation, *, modelled: bool) -> TraceCorrectness:
    """Largest errors over all outputs and input sets, and what else is known."""
    extra: dict[str, Any] = {
        "verdict": str(evaluation.verdict),
        "precision": str(evaluation.precision),
        "source_sha256": evaluation.source_sha256,
        "outputs_judged": evaluation.outputs_judged,
        "largest_share_of_error_budget": _finite(max((one.budget_ratio for one in evaluation.errors), default=0.0)),
    }
    if evaluation.timing is not None and not modelled:
        extra["latency_ms_95"] = [evaluation.timing.low_us / 1000.0, evaluation.timing.high_us / 1000.0]
    if evaluation.comparison is not None and not modelled:
        compared = evaluation.comparison
        extra["speedup_over_baseline"] = {"ratio": compared.speedup, "low": compared.low, "high": compared.high}
    return TraceCorrectness(
        max_relative_error=_finite(max((one.norm_error for one in evaluation.errors), default=0.0)),
        max_absolute_error=_finite(max((one.max_error for one in evaluation.errors), default=0.0)),
        extra=extra,
    )


def _finite(value: float) -> float | str:
    """A number as strict JSON holds it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity"
