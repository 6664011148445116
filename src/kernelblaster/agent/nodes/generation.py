"""The node that hands out the replies of a generation from the archive, and the route to whoever writes them."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime
from langgraph.types import Send

from kernelblaster.agent.archive import Archive
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import HandedOut
from kernelblaster.agent.nodes.generate import SHORT_HASH
from kernelblaster.agent.nodes.start import ROLLOUT, ended_before, rollout_stopped
from kernelblaster.agent.remembering import recalled_attempt
from kernelblaster.agent.slots import problem_slot
from kernelblaster.agent.state import Allocation, ProblemState, RolloutState, StateUpdate


async def open_generation(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Hand out the next generation, and take over what of it has ended before; or say that the round is over."""
    context, generation = runtime.context, state.generation + 1
    if state.pending or state.cut_off or generation > context.config.steps:
        return {"round_over": True, "handed_out": []}
    archive = await asyncio.to_thread(archive_before, context, state, generation)
    if generation > 1 and await asyncio.to_thread(_exhausted, context, state, archive):
        return {"round_over": True, "handed_out": []}
    handed = archive.hand_out(state.round, context.config.rollouts)
    context.emit(
        HandedOut(
            problem=str(context.problem.id),
            slot=problem_slot(context, f"r{state.round}/generation-{generation}"),
            round=state.round,
            generation=generation,
            allocations=handed,
        )
    )
    ended = await asyncio.to_thread(ended_before, context, state.round, generation)
    for result in ended:
        context.emit(rollout_stopped(context, result))
    return {"generation": generation, "handed_out": handed, "finished": ended}


async def hand_out(state: ProblemState, runtime: Runtime[ProblemContext]) -> list[Send] | str:
    """One rollout of one step for each reply that has not ended before."""
    if state.round_over:
        return "reflect"
    context = runtime.context
    archive = await asyncio.to_thread(archive_before, context, state, state.generation)
    place = (state.round, state.generation)
    done = {result.index for result in state.finished if (result.round, result.generation) == place}
    left = [one for one in state.handed_out if one.index not in done]
    return [Send(ROLLOUT, _rollout(state, archive, one)) for one in left] or "distill"


def archive_before(context: ProblemContext, state: ProblemState, generation: int) -> Archive:
    """What was known when a generation began: attempts of later ones may lie on disk when a search is continued."""
    if state.start is None:
        raise ValueError("the start has not been evaluated")
    now = (state.round, generation)
    timing = context.files.evaluation(state.start.evaluation).timing
    recalled = recalled_attempt(context, state.start, state.recalled)
    return Archive(
        start=state.start,
        headroom=timing.headroom if timing else None,
        attempts=[*recalled, *(one for one in context.files.attempts() if (one.round, one.generation) < now)],
        islands=context.config.islands,
    )


def _exhausted(context: ProblemContext, state: ProblemState, archive: Archive) -> bool:
    """Whether another generation would bring nothing: nobody wrote, nothing gained, or nothing is left to gain."""
    latest = [one for one in state.finished if (one.round, one.generation) == (state.round, state.generation)]
    silent = not any(one.transitions for one in latest)
    tired = archive.idle_generations(state.round) >= context.config.patience
    timing = context.files.evaluation(state.start.evaluation).timing if state.start else None
    attainable_us = timing.attainable_us if timing else None
    return silent or tired or context.nothing_left(archive.least_headroom, attainable_us)


def _rollout(state: ProblemState, archive: Archive, handed: Allocation) -> RolloutState:
    parent = handed.parent.sha256
    known = archive.on(parent)
    return RolloutState(
        round=state.round,
        index=handed.index,
        incumbent=handed.parent,
        step=state.generation - 1,
        generation=state.generation,
        donor=handed.donor,
        siblings=[one.index for one in state.handed_out if one.parent.sha256 == parent],
        tried=[one.tried for one in (*archive.way_to(parent), *known)],
        tabu=[one.tried.technique for one in known],
        seen={one.candidate[:SHORT_HASH]: one.verdict for one in archive.attempts if one.candidate and one.verdict},
    )
