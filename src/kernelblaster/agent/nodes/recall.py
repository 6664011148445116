"""The node that begins a search with what is known: the verified kernel that the knowledge base holds of the problem.

It costs no reply. What was chosen is kept before it is judged, so that a search that is started again goes on from the
same kernel, whatever was learned meanwhile.
"""

from __future__ import annotations

import asyncio

from langgraph.runtime import Runtime

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import Judged, judge
from kernelblaster.agent.events import Recalled
from kernelblaster.agent.files import StoredRecall
from kernelblaster.agent.outcome import Incumbent, RecalledKernel
from kernelblaster.agent.remembering import core_to_recall
from kernelblaster.agent.slots import problem_slot
from kernelblaster.agent.state import ProblemState, StateUpdate
from kernelblaster.evaluation.results import Decision, Evaluation
from kernelblaster.knowledge.schema import Core


async def recall(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Judge the kernel that the knowledge base holds of this problem; the search goes on from it if it is faster."""
    context = runtime.context
    if state.start is None:
        raise ValueError("recall runs after profile_start")
    core = await asyncio.to_thread(_chosen, context, state.start)
    if core is None or core.whole is None:
        return {}
    candidate = await asyncio.to_thread(context.files.put_candidate, core.whole)
    judged = await judge(context, candidate, baseline=state.start.sha256)
    recalled = _recalled(core, candidate, judged)
    context.emit(_event(context, state.start, recalled, judged.evaluation))
    return {"recalled": recalled}


def _chosen(context: ProblemContext, start: Incumbent) -> Core | None:
    known = context.files.find_recall()
    if known is None:
        known = StoredRecall(core=core_to_recall(context, start))
        context.files.put_recall(known)
    return known.core


def _recalled(core: Core, candidate: str, judged: Judged) -> RecalledKernel:
    evaluation, comparison = judged.evaluation, judged.evaluation.comparison
    faster = evaluation.correct and comparison is not None and comparison.decision is Decision.FASTER
    return RecalledKernel(
        core=core.id,
        candidate=candidate,
        evaluation=judged.key,
        verdict=evaluation.verdict,
        speedup=comparison.speedup if comparison and evaluation.correct else None,
        accepted=faster,
        reason="" if faster else _refusal(evaluation),
    )


def _refusal(evaluation: Evaluation) -> str:
    if not evaluation.correct:
        return f"it is judged {evaluation.verdict} now: {evaluation.reason}"
    return "it is not faster than the start beyond noise"


def _event(context: ProblemContext, start: Incumbent, recalled: RecalledKernel, evaluation: Evaluation) -> Recalled:
    return Recalled(
        problem=str(context.problem.id),
        slot=problem_slot(context, "recall"),
        core=recalled.core,
        start=start.sha256,
        candidate=recalled.candidate,
        verdict=recalled.verdict,
        speedup=recalled.speedup,
        decision=evaluation.comparison.decision if evaluation.comparison else None,
        median_us=evaluation.timing.median_us if evaluation.timing else None,
        accepted=recalled.accepted,
        reason=recalled.reason,
    )
