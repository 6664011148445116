"""The root graph's first steps: evaluate the start once, then open rounds of rollouts."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime
from langgraph.types import Send

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import Judged, judge
from kernelblaster.agent.events import RoundStarted, StartProfiled
from kernelblaster.agent.slots import problem_slot
from kernelblaster.agent.state import Incumbent, ProblemState, RolloutState, StateUpdate

ROLLOUT = "rollout"


async def profile_start(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Evaluate the starting kernel; without a correct one there is nothing to compare with."""
    context = runtime.context
    source = await asyncio.to_thread(context.problem.init_path.read_text, encoding="utf-8")
    sha256 = await asyncio.to_thread(context.files.put_candidate, source)
    judged = await judge(context, sha256, baseline=None)
    context.emit(_event(context, judged))
    start = Incumbent(sha256=sha256, evaluation=judged.key)
    if not judged.evaluation.correct:
        found = judged.evaluation
        return {"start": start, "failure": f"the starting kernel is not correct: {found.verdict}: {found.reason}"}
    return {"start": start}


async def open_round(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Count the round and announce it. A round that a budget cut off goes on under its number."""
    if state.cut_off:
        return {}
    context = runtime.context
    incumbent = best_incumbent(state)
    round = state.round + 1
    context.emit(
        RoundStarted(
            problem=str(context.problem.id),
            slot=problem_slot(context, f"r{round}"),
            round=round,
            rollouts=context.config.rollouts,
            incumbent=incumbent.sha256,
            gain=incumbent.gain,
        )
    )
    return {"round": round}


def fan_out(state: ProblemState, runtime: Runtime[ProblemContext]) -> list[Send]:
    """One rollout per chain, all from the best kernel known; or the rollouts that a budget cut off, where they were."""
    if state.cut_off:
        return [Send(ROLLOUT, rollout) for rollout in state.cut_off]
    incumbent = best_incumbent(state)
    return [
        Send(ROLLOUT, RolloutState(round=state.round, index=index, incumbent=incumbent))
        for index in range(runtime.context.config.rollouts)
    ]


def best_incumbent(state: ProblemState) -> Incumbent:
    """The kernel with the largest measured gain so far; the start when no rollout gained."""
    if state.start is None:
        raise ValueError("the start has not been evaluated")
    reached = [result.incumbent for result in state.finished]
    return max([state.start, *reached], key=lambda incumbent: incumbent.gain)


def _event(context: ProblemContext, judged: Judged) -> StartProfiled:
    timing = judged.evaluation.timing
    return StartProfiled(
        problem=str(context.problem.id),
        slot=problem_slot(context, "start"),
        verdict=judged.evaluation.verdict,
        reason=judged.evaluation.reason,
        median_us=timing.median_us if timing else None,
        floor_fraction=timing.floor_fraction if timing else None,
        modelled=timing.modelled if timing else None,
    )
