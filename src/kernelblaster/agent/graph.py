"""The workflow of one problem as two LangGraph graphs, and the entry point that runs it to an outcome.

    problem:  profile_start -> open_round -> (Send) rollout x N -> reflect -> open_round | finalize
    rollout:  open_step -> classify -> retrieve -> generate -> evaluate -> record -> decide -> open_step | finish
                                                   ^------ repair ------'

Rollouts are a compiled subgraph with checkpoints of their own, so a killed search continues each one at the node it
had reached. A node that waits for a reply interrupts its rollout only; the others go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from kernelblaster.agent.checkpoints import open_checkpoints
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.final_kernel import final_kernel_path
from kernelblaster.agent.nodes.decide import decide, finish
from kernelblaster.agent.nodes.evaluate import evaluate, repairable
from kernelblaster.agent.nodes.finalize import finalize
from kernelblaster.agent.nodes.generate import generate
from kernelblaster.agent.nodes.record import record
from kernelblaster.agent.nodes.reflect import reflect
from kernelblaster.agent.nodes.retrieve import retrieve
from kernelblaster.agent.nodes.start import ROLLOUT, fan_out, open_round, profile_start
from kernelblaster.agent.nodes.step import classify, open_step
from kernelblaster.agent.state import (
    OutcomeStatus,
    PendingRequest,
    ProblemOutcome,
    ProblemState,
    RolloutOutput,
    RolloutState,
    StateUpdate,
)
from kernelblaster.config import SearchConfig

CHECKPOINTS = "checkpoints.sqlite"


async def run_problem(context: ProblemContext) -> ProblemOutcome:
    """Search one problem until it is finished, a budget ends it, or it waits for replies.

    Called again with the same directory it continues where it stopped: evaluations and replies that exist are used,
    rollouts that a budget ended go on, and a finished search returns its outcome at once.

    Raises:
        ModelError: the model cannot answer (wrong key, unreachable); the next call continues.
        DeviceError: the device failed; the next call continues.
    """
    async with open_checkpoints(context.directory / CHECKPOINTS) as saver:
        graph = build_graph(saver)
        config: RunnableConfig = {
            "configurable": {"thread_id": str(context.problem.id)},
            "recursion_limit": _supersteps(context.config),
        }
        before = await graph.aget_state(config)
        given = _input(before)
        if given is not None or before.tasks:
            await graph.ainvoke(given, config, context=context, durability="sync")
        return await asyncio.to_thread(_outcome, context, await graph.aget_state(config))


def _input(before: StateSnapshot) -> ProblemState | StateUpdate | None:
    """What the graph is started with; None continues it, or leaves a finished search as it is.

    A kill may come between the last write of a superstep and the checkpoint that follows: then nothing is `next`, but
    there are tasks.
    """
    if not before.values:
        return ProblemState()
    if not before.tasks and ProblemState.model_validate(before.values).cut_off:
        return {"conclusion": None}
    return None


def build_graph(
    saver: BaseCheckpointSaver[str] | None,
) -> CompiledStateGraph[ProblemState, ProblemContext, Any, ProblemState]:
    """The graph of one problem."""
    builder = StateGraph(ProblemState, context_schema=ProblemContext)
    builder.add_node(profile_start)
    builder.add_node(open_round)
    builder.add_node(ROLLOUT, _rollout_graph())
    builder.add_node(reflect)
    builder.add_node(finalize)
    builder.add_edge(START, "profile_start")
    builder.add_conditional_edges("profile_start", _after_start)
    builder.add_conditional_edges("open_round", fan_out, [ROLLOUT])
    builder.add_edge(ROLLOUT, "reflect")
    builder.add_conditional_edges("reflect", _after_reflection)
    builder.add_edge("finalize", END)
    return builder.compile(checkpointer=saver, name="problem")


def _rollout_graph() -> CompiledStateGraph[RolloutState, ProblemContext, RolloutState, RolloutOutput]:
    builder = StateGraph(RolloutState, context_schema=ProblemContext, output_schema=RolloutOutput)
    for node in (open_step, classify, retrieve, generate, evaluate, record, decide, finish):
        builder.add_node(node)
    builder.add_conditional_edges(START, _entry)
    builder.add_conditional_edges("open_step", _or_finish("classify"), ["classify", "finish"])
    builder.add_conditional_edges("classify", _or_finish("retrieve"), ["retrieve", "finish"])
    builder.add_conditional_edges("retrieve", _or_finish("generate"), ["generate", "finish"])
    builder.add_conditional_edges("generate", _after_generate)
    builder.add_conditional_edges("evaluate", _after_evaluate)
    builder.add_edge("record", "decide")
    builder.add_conditional_edges("decide", _or_finish("open_step"), ["open_step", "finish"])
    builder.add_edge("finish", END)
    return builder.compile(name=ROLLOUT)


def _entry(state: RolloutState) -> Literal["open_step", "generate"]:
    """A rollout that was cut off inside a step goes on with that step's technique."""
    return "generate" if state.choice else "open_step"


def _or_finish(following: str) -> Callable[[RolloutState], str]:
    """Route to `following` unless the rollout has a reason to stop."""

    def route(state: RolloutState) -> str:
        return "finish" if state.stop else following

    return route


def _after_generate(
    state: RolloutState, runtime: Runtime[ProblemContext]
) -> Literal["evaluate", "generate", "record", "finish"]:
    if state.stop:
        return "finish"
    if state.attempt and state.attempt.failure is None:
        return "evaluate"
    return "generate" if repairable(state, runtime.context.config.allowed_repairs) else "record"


def _after_evaluate(state: RolloutState, runtime: Runtime[ProblemContext]) -> Literal["generate", "record"]:
    return "generate" if repairable(state, runtime.context.config.allowed_repairs) else "record"


def _after_start(state: ProblemState) -> Literal["open_round", "finalize"]:
    return "finalize" if state.failure else "open_round"


def _after_reflection(state: ProblemState, runtime: Runtime[ProblemContext]) -> Literal["open_round", "finalize"]:
    return "finalize" if state.cut_off or state.round >= runtime.context.config.rounds else "open_round"


def _supersteps(config: SearchConfig) -> int:
    """An upper bound on the supersteps of either graph; LangGraph wants one against endless loops."""
    per_step = 6 + 2 * (config.allowed_repairs + 1)
    return config.steps * per_step + config.rounds * 4 + 20


def _outcome(context: ProblemContext, snapshot: StateSnapshot) -> ProblemOutcome:
    state = ProblemState.model_validate(snapshot.values)
    files = context.files
    outcome = ProblemOutcome(
        problem=str(context.problem.id),
        status=OutcomeStatus.WAITING,
        start=files.evaluation(state.start.evaluation) if state.start else None,
        verdicts=_count(state),
        transitions=sum(result.transitions for result in state.finished),
        rollouts=[result.model_copy(update={"cut_off": None}) for result in state.finished],
        pending=[PendingRequest.model_validate(one.value) for task in snapshot.tasks for one in task.interrupts],
    )
    if state.conclusion is None:
        return outcome.model_copy(update={"reason": f"{len(outcome.pending)} replies are pending"})
    conclusion = state.conclusion
    winner = next((f for f in conclusion.finalists if f.sha256 == conclusion.final_sha256), None)
    return outcome.model_copy(
        update={
            "status": conclusion.status,
            "reason": conclusion.reason,
            "final_sha256": conclusion.final_sha256,
            "final_kernel": final_kernel_path(context.directory) if winner else None,
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
