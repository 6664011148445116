"""The node that has a machine try the values that a reply declares, before anything is judged. It asks no model."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import sweep as timed
from kernelblaster.agent.events import Swept
from kernelblaster.agent.files import StoredSweep
from kernelblaster.agent.slots import attempt_slot
from kernelblaster.agent.state import Attempt, RolloutState, StateUpdate
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.tunables import BadTunable, Variant, variants

JUDGED_VARIANTS = 3
"""Variants that are judged at most until one is correct, the source as written among them."""


async def sweep(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Put the fastest variant of the reply's source in its place; nothing where it declares no tunables."""
    context, attempt = runtime.context, state.attempt
    if attempt is None or attempt.candidate is None:
        raise ValueError("sweep runs after a reply with a source")
    if not context.config.has(SearchPart.SWEEP) or context.problem.weakly_verified:
        return {}
    try:
        found = await asyncio.to_thread(_variants, context, attempt.candidate)
    except BadTunable as bad:
        context.emit(_event(context, state, attempt, skipped=bad.reason))
        return {}
    if len(found) < 2:
        return {}
    stored = await timed(context, attempt.candidate, found)
    ranked = await asyncio.to_thread(_keep_ranked, context, state, stored, found)
    context.emit(_event(context, state, attempt, stored=stored))
    if not ranked:
        return {}
    order = [*dict.fromkeys([*ranked[: JUDGED_VARIANTS - 1], attempt.candidate])]
    return {"attempt": attempt.model_copy(update={"candidate": order[0], "next_best": order[1:], "swept": True})}


def _variants(context: ProblemContext, sha256: str) -> list[Variant]:
    return variants(context.files.candidate(sha256), context.config.sweep_variants, context.config.seed)


def _keep_ranked(context: ProblemContext, state: RolloutState, stored: StoredSweep, found: list[Variant]) -> list[str]:
    """Variants that were timed, the fastest first, the sources of those to be judged stored; never the parent."""
    sources = {source_digest(one.source): one.source for one in found}
    sources.pop(state.incumbent.sha256, None)
    timed_ones = [
        (point.found.median_us, point.found.source_sha256)
        for point in stored.points
        if point.found.median_us is not None and point.found.source_sha256 in sources
    ]
    ranked = [sha256 for _, sha256 in sorted(timed_ones)]
    for sha256 in ranked[:JUDGED_VARIANTS]:
        context.files.put_candidate(sources[sha256])
    return ranked


def _event(
    context: ProblemContext, state: RolloutState, attempt: Attempt, stored: StoredSweep | None = None, skipped: str = ""
) -> Swept:
    points = stored.points if stored else []
    timed_ones = [(point.found.median_us, point.found) for point in points if point.found.median_us is not None]
    best_us, best = min(timed_ones, key=lambda pair: pair[0]) if timed_ones else (None, None)
    written_us = points[0].found.median_us if points else None
    return Swept(
        problem=str(context.problem.id),
        slot=attempt_slot(context, state, attempt.number),
        candidate=attempt.candidate or "",
        winner=best.source_sha256 if best else None,
        gain=written_us / best_us if written_us and best_us else None,
        points=points,
        seconds=stored.seconds if stored else 0.0,
        stages=stored.stages if stored else {},
        skipped=skipped,
    )
