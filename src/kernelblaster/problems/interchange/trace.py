"""A trace: the result of a solution for one workload. Without a solution it only states a workload."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernelblaster.problems.exchanged import ExchangedModel, Name
from kernelblaster.problems.workload import Workload

Figure = float | str
"""A number; formats that keep to strict JSON write `NaN` and `Infinity` as text."""


class TraceEnvironment(ExchangedModel):
    """Where a solution was evaluated, and with which versions of which libraries."""

    hardware: Name
    libs: dict[str, str] = Field(default_factory=dict)


class TraceCorrectness(ExchangedModel):
    """Largest errors over all outputs. `extra` holds what else the evaluator knows."""

    max_relative_error: Figure = 0.0
    max_absolute_error: Figure = 0.0
    extra: dict[str, Any] | None = None


class TracePerformance(ExchangedModel):
    """Times in milliseconds, and time of the reference over that of the solution; 0 for what was not measured."""

    latency_ms: Figure = 0.0
    reference_latency_ms: Figure = 0.0
    speedup_factor: Figure = 0.0


class TraceEvaluation(ExchangedModel):
    """How a solution fared.

    Attributes:
        status: `PASSED`, `INCORRECT_NUMERICAL`, `COMPILE_ERROR`, ...; later versions of the formats add more.
        environment: where.
        timestamp: when, ISO 8601.
        log: what the tools and the program printed.
        correctness: errors, where outputs could be compared.
        performance: times, where it passed.
    """

    status: Name
    environment: TraceEnvironment
    timestamp: Name
    log: str = ""
    correctness: TraceCorrectness | None = None
    performance: TracePerformance | None = None


class Trace(ExchangedModel):
    """One line of a file of traces or workloads.

    Attributes:
        definition: name of what is computed.
        workload: for which extents and inputs.
        solution: name of what was evaluated; None where only a workload is stated.
        evaluation: its result.
    """

    definition: Name
    workload: Workload
    solution: str | None = None
    evaluation: TraceEvaluation | None = None
