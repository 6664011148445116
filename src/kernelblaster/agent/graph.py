"""The workflow of one problem as two LangGraph graphs, and the entry point that runs it to an outcome.

    problem:  write_start -> profile_start -> recall -> open_round -> open_generation
              open_generation -> (Send) rollout x N -> distill -> open_generation | reflect
              reflect -> open_round | finalize
    rollout:  [open_step, classify, retrieve] -> generate -> [sweep, evaluate] -> [record, decide]
                 ^                                 ^---------- repair ----------'          |
                 '------------------------------------------------------------------------- | finish

What stands in brackets is one node of LangGraph: a superstep takes more of the processor than any of these alone.

With an archive a rollout is one step of one generation; without, it is a chain of steps and a round is one generation
(`--ablate archive`).

Nothing of the graph is saved. What nodes do that costs time or money, and what they decide by chance or by what is
known at the time, lies in the search's files by its place in the search (`files.py`). A search that is started again
runs through the graph again and finds it there; rollouts that have ended are not run through at all. A node that has
to wait for a reply ends its rollout for this start; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Literal, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.final_kernel import final_kernel_path
from kernelblaster.agent.nodes.decide import decide, finish
from kernelblaster.agent.nodes.distill import distill
from kernelblaster.agent.nodes.evaluate import evaluate, repairable
from kernelblaster.agent.nodes.finalize import finalize
from kernelblaster.agent.nodes.first_kernel import write_start
from kernelblaster.agent.nodes.generate import generate
from kernelblaster.agent.nodes.generation import hand_out, open_generation
from kernelblaster.agent.nodes.recall import recall
from kernelblaster.agent.nodes.record import record
from kernelblaster.agent.nodes.reflect import reflect
from kernelblaster.agent.nodes.retrieve import retrieve
from kernelblaster.agent.nodes.start import ROLLOUT, fan_out, open_round, profile_start
from kernelblaster.agent.nodes.step import classify, open_step
from kernelblaster.agent.nodes.sweep import sweep
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.agent.state import ProblemState, RolloutOutput, RolloutState, StateUpdate
from kernelblaster.agent.task import unjudged_sizes
from kernelblaster.config import SearchConfig

_WAIT: Literal["__end__"] = "__end__"
"""LangGraph's END, by its value: a type checker knows that as no more than text."""


async def run_problem(context: ProblemContext) -> ProblemOutcome:
    """Search one problem until it is finished, a budget ends it, or it waits for replies.

    Called again with the same directory it runs through the same nodes, which find what earlier calls have left and
    do nothing twice: it goes on where it stopped, and a finished search returns its outcome at once.

    Raises:
        ModelError: the model cannot answer (wrong key, unreachable); the next call continues.
        DeviceError: the device failed; the next call continues.
    """
    config: RunnableConfig = {"recursion_limit": _supersteps(context.config)}
    reached = await build_graph().ainvoke(ProblemState(), config, context=context)
    return await asyncio.to_thread(_outcome, context, ProblemState.model_validate(reached))


@cache
def build_graph() -> CompiledStateGraph[ProblemState, ProblemContext, Any, ProblemState]:
    """The graph of one problem."""
    builder = StateGraph(ProblemState, context_schema=ProblemContext)
    builder.add_node(write_start)
    builder.add_node(profile_start)
    builder.add_node(recall)
    builder.add_node(open_round)
    builder.add_node(open_generation)
    builder.add_node(ROLLOUT, _rollout_graph())
    builder.add_node(distill)
    builder.add_node(reflect)
    builder.add_node(finalize)
    builder.add_edge(START, "write_start")
    builder.add_conditional_edges("write_start", _after_writing)
    builder.add_conditional_edges("profile_start", _after_start)
    builder.add_edge("recall", "open_round")
    builder.add_conditional_edges("open_round", fan_out, [ROLLOUT, "distill", "open_generation"])
    builder.add_conditional_edges("open_generation", hand_out, [ROLLOUT, "reflect", "distill"])
    builder.add_edge(ROLLOUT, "distill")
    builder.add_conditional_edges("distill", _after_lessons)
    builder.add_conditional_edges("reflect", _after_reflection)
    builder.add_edge("finalize", END)
    return builder.compile(name="problem")


def _rollout_graph() -> CompiledStateGraph[RolloutState, ProblemContext, RolloutState, RolloutOutput]:
    builder = StateGraph(RolloutState, context_schema=ProblemContext, output_schema=RolloutOutput)
    builder.add_node("begin", _in_turn(open_step, classify, retrieve))
    builder.add_node(generate)
    builder.add_node("judge", _in_turn(sweep, evaluate))
    builder.add_node("conclude", _in_turn(record, decide))
    builder.add_node(finish)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", _or_finish("generate"), ["generate", "finish", END])
    builder.add_conditional_edges("generate", _after_generate)
    builder.add_conditional_edges("judge", _after_judging)
    builder.add_conditional_edges("conclude", _or_finish("begin"), ["begin", "finish"])
    builder.add_edge("finish", END)
    return builder.compile(name=ROLLOUT)


class _RolloutNode(Protocol):
    """A node of the rollout."""

    async def __call__(self, state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate: ...


def _in_turn(*nodes: _RolloutNode) -> _RolloutNode:
    """Nodes one after another, each on what those before it have changed, until one has a reason to stop or to wait."""

    async def run(state: RolloutState, runtime: Runtime[ProblemContext]) -> StateUpdate:
        changed: StateUpdate = {}
        for node in nodes:
            changed |= await node(state.model_copy(update=changed), runtime)
            if changed.get("stop") or changed.get("pending"):
                break
        return changed

    return run


# Routes are coroutines, although they wait for nothing: LangGraph would call functions in threads.


def _or_finish(following: str) -> Callable[[RolloutState], Awaitable[str]]:
    """Route to `following` unless the rollout has a reason to stop, or has to wait."""

    async def route(state: RolloutState) -> str:
        if state.pending:
            return _WAIT
        return "finish" if state.stop else following

    return route


async def _after_generate(
    state: RolloutState, runtime: Runtime[ProblemContext]
) -> Literal["judge", "generate", "conclude", "finish", "__end__"]:
    if state.pending:
        return _WAIT
    if state.stop:
        return "finish"
    if state.attempt and state.attempt.failure is None:
        return "judge"
    return "generate" if repairable(state, runtime.context.config.allowed_repairs) else "conclude"


async def _after_judging(state: RolloutState, runtime: Runtime[ProblemContext]) -> Literal["generate", "conclude"]:
    return "generate" if repairable(state, runtime.context.config.allowed_repairs) else "conclude"


async def _after_writing(state: ProblemState) -> Literal["profile_start", "finalize", "__end__"]:
    if state.pending:
        return _WAIT
    return "finalize" if state.failure else "profile_start"


async def _after_start(state: ProblemState) -> Literal["recall", "finalize"]:
    return "finalize" if state.failure else "recall"


async def _after_lessons(
    state: ProblemState, runtime: Runtime[ProblemContext]
) -> Literal["open_generation", "reflect"]:
    return "open_generation" if runtime.context.archive else "reflect"


async def _after_reflection(
    state: ProblemState, runtime: Runtime[ProblemContext]
) -> Literal["open_round", "finalize", "__end__"]:
    if state.pending:
        return _WAIT
    return "finalize" if state.cut_off or state.round >= runtime.context.config.rounds else "open_round"


def _supersteps(config: SearchConfig) -> int:
    """An upper bound on the supersteps of either graph; LangGraph wants one against endless loops."""
    per_step = 2 + 2 * (config.allowed_repairs + 1)
    return config.steps * per_step + config.rounds * (5 + 3 * config.steps) + 20


def _outcome(context: ProblemContext, state: ProblemState) -> ProblemOutcome:
    files = context.files
    outcome = ProblemOutcome(
        problem=str(context.problem.id),
        status=OutcomeStatus.WAITING,
        start=files.evaluation(state.start.evaluation) if state.start else None,
        recalled=state.recalled,
        verdicts=_count(state),
        transitions=sum(result.transitions for result in state.finished),
        rollouts=state.finished,
        pending=[*state.pending, *state.unhurried] if state.conclusion is None else [],
        unjudged=unjudged_sizes(context),
        pytorch_us=context.pytorch_us,
    )
    if state.conclusion is None:
        count = len(outcome.pending)
        waits = "1 reply is pending" if count == 1 else f"{count} replies are pending"
        return outcome.model_copy(update={"reason": waits})
    conclusion = state.conclusion
    winner = next((f for f in conclusion.finalists if f.sha256 == conclusion.final_sha256), None)
    return outcome.model_copy(
        update={
            "status": conclusion.status,
            "reason": conclusion.reason,
            "hint": conclusion.hint,
            "final_sha256": conclusion.final_sha256,
            "final_kernel": final_kernel_path(context.directory) if conclusion.final_sha256 else None,
            "comparison": winner.comparison if winner else None,
            "finalists": conclusion.finalists,
        }
    )


def _count(state: ProblemState) -> dict[str, int]:
    total: dict[str, int] = {}
    for result in state.finished:
        for verdict, count in result.verdicts.items():
            total[verdict] = total.get(verdict, 0) + count
    return total
