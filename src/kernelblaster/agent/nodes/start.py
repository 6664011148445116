"""The root graph's first steps: evaluate the start once; then, round by round, open rollouts."""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime
from langgraph.types import Send

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import Judged, judge
from kernelblaster.agent.events import RolloutStopped, RoundStarted, StartProfiled
from kernelblaster.agent.outcome import Incumbent, RolloutResult
from kernelblaster.agent.remembering import recalled_attempt
from kernelblaster.agent.slots import problem_slot, result_slot
from kernelblaster.agent.state import ProblemState, RolloutState, StateUpdate, Tried
from kernelblaster.problems.start import read_start

ROLLOUT = "rollout"


async def profile_start(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Evaluate the starting kernel; without a correct one there is nothing to compare with."""
    context = runtime.context
    sha256 = await asyncio.to_thread(_put_start, context) if state.written is None else state.written
    judged = await judge(context, sha256, baseline=None)
    context.emit(_event(context, judged))
    start = Incumbent(sha256=sha256, evaluation=judged.key)
    if not judged.evaluation.correct:
        found = judged.evaluation
        return {"start": start, "failure": f"the starting kernel is not correct: {found.verdict}: {found.reason}"}
    return {"start": start}


def _put_start(context: ProblemContext) -> str:
    return context.files.put_candidate(read_start(context.problem))


async def open_round(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Count the round, announce it, and take over the chains of it that have ended before."""
    context = runtime.context
    round = state.round + 1
    incumbent = best_incumbent(state, round)
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
    opened = {"round": round, "generation": 0, "round_over": False}
    if context.archive:
        return opened
    ended = await asyncio.to_thread(ended_before, context, round, 0)
    for result in ended:
        context.emit(rollout_stopped(context, result))
    return {**opened, "finished": ended}


async def fan_out(state: ProblemState, runtime: Runtime[ProblemContext]) -> list[Send] | str:
    """One rollout per chain that has not ended before, all from the best kernel of the rounds before."""
    if runtime.context.archive:
        return "open_generation"
    incumbent = best_incumbent(state, state.round)
    ended = {result.index for result in state.finished if result.round == state.round}
    left = [index for index in range(runtime.context.config.rollouts) if index not in ended]
    tried = await asyncio.to_thread(_history, runtime.context, state, incumbent)
    return [
        Send(ROLLOUT, RolloutState(round=state.round, index=index, incumbent=incumbent, tried=tried)) for index in left
    ] or "distill"


def _history(context: ProblemContext, state: ProblemState, incumbent: Incumbent) -> list[Tried]:
    """What a chain's prompts tell of the kernel it begins on: that it was recalled, if it was."""
    if state.start is None or incumbent.sha256 == state.start.sha256:
        return []
    known = recalled_attempt(context, state.start, state.recalled)
    return [one.tried for one in known if one.candidate == incumbent.sha256]


def best_incumbent(state: ProblemState, round: int) -> Incumbent:
    """The kernel with the largest measured gain before a round; the start when nothing was recalled or gained."""
    if state.start is None:
        raise ValueError("the start has not been evaluated")
    recalled = state.recalled.incumbent if state.recalled else None
    known = [state.start, *([recalled] if recalled else [])]
    reached = [result.incumbent for result in state.finished if result.round < round]
    return max([*known, *reached], key=lambda incumbent: incumbent.gain)


def ended_before(context: ProblemContext, round: int, generation: int) -> list[RolloutResult]:
    """Results of rollouts that earlier starts have brought to an end, of a round's chains or of a generation."""
    slots = (result_slot(context, round, index, generation) for index in range(context.config.rollouts))
    found = (context.files.find_rollout(slot) for slot in slots)
    return [result for result in found if result is not None]


def rollout_stopped(context: ProblemContext, result: RolloutResult) -> RolloutStopped:
    """What the outside is told about a rollout that has ended."""
    return RolloutStopped(
        problem=str(context.problem.id),
        slot=result_slot(context, result.round, result.index, result.generation),
        reason=result.stop,
        steps=result.transitions,
        incumbent=result.incumbent.sha256,
        gain=result.incumbent.gain,
    )


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
        attainable_us=timing.attainable_us if timing else None,
        pytorch_us=context.pytorch_us,
    )
