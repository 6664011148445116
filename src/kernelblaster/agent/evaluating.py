"""Asking the evaluator from inside a node: every question is answered once and its answer kept in a file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.files import EvaluationKey, StoredSweep, SweepPoint
from kernelblaster.cuda_source.tunables import Variant
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.evaluation.results import Evaluation

SEARCH = "search"
FINAL = "final"
SANITIZE = "sanitize"
SWEEP = "sweep"


@dataclass(frozen=True)
class Judged:
    """An evaluation, the key of its file, and whether it had been made before."""

    key: str
    evaluation: Evaluation
    reused: bool


async def judge(context: ProblemContext, sha256: str, baseline: str | None, purpose: str = SEARCH) -> Judged:
    """Evaluate a stored candidate against a stored baseline, or return what is known of the pair.

    Args:
        context: of the problem.
        sha256: candidate.
        baseline: SHA-256 of the parent; None for the start, which has none.
        purpose: `FINAL` evaluations are made again even when the search has one, in several pairs of fresh processes,
            and take no profile.

    Raises DeviceError.
    """
    key = _key(context, sha256, baseline, purpose)
    async with context.flight(key):
        if context.files.evaluation_path(key).exists():
            known = await asyncio.to_thread(context.files.find_evaluation, key)
            if known is not None:
                return Judged(key=key, evaluation=known, reused=True)
        async with context.limits.evaluations:
            evaluation = await asyncio.to_thread(_evaluate, context, key, sha256, baseline, purpose)
    return Judged(key=key, evaluation=evaluation, reused=False)


async def sanitize(context: ProblemContext, sha256: str) -> list[SanitizerFinding]:
    """Run the sanitizers on a stored candidate, or return what they have found before. Raises DeviceError."""
    key = _key(context, sha256, None, SANITIZE)
    async with context.flight(key):
        known = await asyncio.to_thread(context.files.find_findings, key)
        if known is not None:
            return known
        async with context.limits.evaluations:
            return await asyncio.to_thread(_sanitize, context, key, sha256)


async def sweep(context: ProblemContext, sha256: str, variants: Sequence[Variant]) -> StoredSweep:
    """Time the variants of a stored candidate, or return what an earlier start has found. Raises DeviceError."""
    key = _key(context, sha256, None, SWEEP)
    async with context.flight(key):
        known = await asyncio.to_thread(context.files.find_sweep, key)
        if known is not None:
            return known
        async with context.limits.evaluations:
            return await asyncio.to_thread(_sweep, context, key, variants)


def _sweep(context: ProblemContext, key: str, variants: Sequence[Variant]) -> StoredSweep:
    """Runs in a thread and stores its result there, as `_evaluate` does."""
    began = time.monotonic()
    found = context.evaluator.sweep(context.problem, [variant.source for variant in variants])
    points = [SweepPoint(values=one.values, found=timed) for one, timed in zip(variants, found.variants, strict=True)]
    stored = StoredSweep(points=points, seconds=time.monotonic() - began, stages=found.seconds)
    context.files.put_sweep(key, stored)
    return stored


def _key(context: ProblemContext, sha256: str, baseline: str | None, purpose: str) -> str:
    facts = context.facts
    return EvaluationKey(
        source=sha256,
        baseline=baseline,
        device=f"{facts.kind}/{facts.name}/{facts.arch}",
        precision=str(context.precision),
        workload=str(context.workload),
        purpose=purpose,
    ).name


def _sanitize(context: ProblemContext, key: str, sha256: str) -> list[SanitizerFinding]:
    """Runs in a thread and stores its result there, as `_evaluate` does."""
    findings = context.evaluator.sanitize(context.problem, context.files.candidate(sha256))
    context.files.put_findings(key, findings)
    return findings


def _evaluate(context: ProblemContext, key: str, sha256: str, baseline: str | None, purpose: str) -> Evaluation:
    """Runs in a thread and stores its result there, so that it is kept even when the node is cancelled."""
    evaluation = context.evaluator.evaluate(
        context.problem,
        context.files.candidate(sha256),
        baseline=None if baseline is None else context.files.candidate(baseline),
        profile=purpose == SEARCH,
        process_pairs=context.config.process_pairs if purpose == FINAL else 1,
    )
    context.files.put_evaluation(key, evaluation)
    return evaluation
