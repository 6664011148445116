"""What an agent sees of a problem and of a judged submission. Pydantic, since it crosses the socket; finite always."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from kernelblaster.agent.sources import cut_middle
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.catalogue import problem_identifier
from kernelblaster.environment.feedback import LOG_CHARACTERS, feedback
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.rewards import NOT_BUILT, Reward
from kernelblaster.environment.sanitizing import ToldFinding
from kernelblaster.environment.task_text import TaskText
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.knowledge.decisions import Classification
from kernelblaster.problems.problem import Problem

NO_CODE = "no_code"
"""Verdict of a submission that holds no source."""


class KernelObservation(BaseModel):
    """One observation. What is not known is None or empty, never a number in its place."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    done: bool = False
    reward: float | None = None
    """0.0 at reset."""
    metadata: dict[str, Any] = {}
    """What a reward rests on: device, precision, workload, version, reward scheme and its options."""
    problem_id: str = ""
    """`L1_23_Softmax`"""
    problem_description: str = ""
    """Rules, tensors, sizes, launcher, GPU; empty after a step."""
    reference_code: str = ""
    start_code: str = ""
    """The kernel to begin with, which is the baseline `start`; like the description, at reset alone."""
    gpu_info: str = ""
    turn: int = 0
    max_turns: int = 0
    compilation_success: bool = False
    """False until a build succeeded."""
    compilation_error: str | None = None
    correctness_pass: bool | None = None
    """None when nothing was run."""
    max_diff: float | None = None
    """Largest error against the reference; None when it is unknown or infinite."""
    language: str = ""
    """What the submission was written in: `cuda`, `triton` or `inline`; empty where there was none."""
    tier: Tier | None = None
    """How far it was judged; None at reset, and where there was no source."""
    verdict: str = ""
    """A `Verdict`, or `no_code`; empty at reset."""
    reason: str = ""
    log: str = ""
    speedup: float | None = None
    """Against the baseline; None unless correct."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    decision: str | None = None
    baseline: str = EpisodeBaseline.START
    """What the speed-up is against: an `EpisodeBaseline`."""
    modelled: bool = False
    """Whether this device's times come from a model, in every observation: such times compare with each other alone."""
    runtime_us: float | None = None
    """Median of the whole call; None unless correct and timed."""
    runtime_low_us: float | None = None
    runtime_high_us: float | None = None
    """95 % interval of a measured median; None where a model gives the time, which is the same each time."""
    baseline_us: float | None = None
    pytorch_us: dict[str, float] = {}
    """PyTorch's mode -> its time on this very GPU, sampled in another sitting; empty where it has none."""
    attainable_us: float | None = None
    """What a well-written kernel should reach on this device."""
    floor_us: float | None = None
    """No correct kernel can be faster on this device."""
    profile: dict[str, float] = {}
    """Nsight Compute metric -> value for the whole call."""
    state: dict[str, Any] = {}
    """The bottleneck: `name`, `confidence` and `evidence`."""
    findings: dict[str, Any] = {}
    """`resources` per kernel, `warnings` of the judge, and where sanitizers ran `sanitizers`, each a `ToldFinding`."""
    reward_parts: dict[str, float] = {}
    hack: bool = False
    suspicious: bool = False
    device_limit: bool = False
    """The device set the limit, not the submission: a trainer may drop the sample."""
    feedback: str = ""
    """What a model should read, bounded."""


def at_reset(problem: Problem, task: TaskText, description: str, max_turns: int) -> KernelObservation:
    """The first observation of an episode."""
    return KernelObservation(
        reward=0.0,
        problem_id=problem_identifier(problem),
        problem_description=description,
        reference_code=task.reference,
        start_code=task.start,
        gpu_info=task.gpu,
        max_turns=max_turns,
    )


def without_source(problem: Problem, reason: str, reward: Reward) -> KernelObservation:
    """The observation of a submission that held no source."""
    return KernelObservation(
        reward=reward.value,
        problem_id=problem_identifier(problem),
        compilation_error=reason,
        verdict=NO_CODE,
        reason=reason,
        reward_parts=reward.parts,
        feedback=f"## Compile\nNothing was built: {reason}\n\n## Reward\n{reward.value:.3f}",
    )


def of_evaluation(
    problem: Problem,
    source: str,
    evaluation: Evaluation,
    reward: Reward,
    judge: SharedJudge,
    against: str,
    sanitizers: Sequence[ToldFinding] | None = None,
) -> KernelObservation:
    """The observation of a judged submission.

    Args:
        problem: that it solves.
        source: that was judged.
        evaluation: the judge's word.
        reward: that it got.
        judge: names its bottleneck.
        against: what its speed-up is against, in words.
        sanitizers: what they found; None where they did not run.
    """
    bottleneck = judge.classify(evaluation) if evaluation.correct else None
    built = evaluation.verdict not in NOT_BUILT
    ran = built and evaluation.verdict not in (Verdict.REWARD_HACK, Verdict.NOT_EMULATABLE, Verdict.BUILT)
    observation = KernelObservation(
        reward=reward.value,
        problem_id=problem_identifier(problem),
        compilation_success=built,
        compilation_error=None if built else cut_middle(evaluation.log or evaluation.reason, LOG_CHARACTERS),
        correctness_pass=evaluation.correct if ran else None,
        max_diff=_max_diff(evaluation),
        language=evaluation.language,
        tier=evaluation.tier,
        verdict=evaluation.verdict,
        reason=evaluation.reason,
        log=cut_middle(evaluation.log, LOG_CHARACTERS),
        profile=_finite_only(evaluation.profile.totals if evaluation.profile else {}),
        state=_state(bottleneck),
        findings=_findings(evaluation, sanitizers),
        reward_parts=reward.parts,
        hack=reward.hack,
        suspicious=reward.suspicious,
        device_limit=reward.device_limit,
        feedback=feedback(evaluation, source, bottleneck, reward, against=against, sanitizers=sanitizers),
    )
    return observation.model_copy(update=_times(evaluation) if evaluation.correct else {})


def _times(evaluation: Evaluation) -> dict[str, object]:
    timing, found = evaluation.timing, evaluation.comparison
    if timing is None:
        return {}
    values: dict[str, object] = {
        "runtime_us": _finite(timing.median_us),
        "runtime_low_us": None if timing.modelled else _finite(timing.low_us),
        "runtime_high_us": None if timing.modelled else _finite(timing.high_us),
        "attainable_us": _finite(timing.attainable_us),
        "floor_us": _finite(timing.floor_us),
    }
    if found is not None:
        values |= {
            "speedup": _finite(found.speedup),
            "speedup_low": _finite(found.low),
            "speedup_high": _finite(found.high),
            "decision": str(found.decision),
            "baseline_us": _finite(found.baseline.median_us),
        }
    return values


def _max_diff(evaluation: Evaluation) -> float | None:
    errors = [figures.max_error for figures in evaluation.errors]
    return _finite(max(errors)) if errors and all(map(math.isfinite, errors)) else None


def _state(bottleneck: Classification | None) -> dict[str, Any]:
    if bottleneck is None:
        return {}
    return {
        "name": bottleneck.state,
        "confidence": bottleneck.confidence,
        "evidence": list(bottleneck.evidence),
    }


def _findings(evaluation: Evaluation, sanitizers: Sequence[ToldFinding] | None) -> dict[str, Any]:
    resources = [kernel.model_dump(mode="json") for kernel in evaluation.resources]
    found: dict[str, Any] = {"resources": resources, "warnings": list(evaluation.warnings)}
    ran = {} if sanitizers is None else {"sanitizers": [one.model_dump() for one in sanitizers]}
    return {name: value for name, value in found.items() if value} | ran


def _finite_only(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
