"""The node that learns from a round: predicted against measured gains, and typed changes that they support.

The model proposes; the schema and the knowledge base decide: every change is validated on its own, and what does
not fit is refused with its reason. Reflection that cannot happen (no reply, no budget) changes nothing.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime
from pydantic import BaseModel, TypeAdapter, ValidationError

from kernelblaster.agent.asking import Unanswered, ask, frozen_request
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import Reflected
from kernelblaster.agent.files import Reflection
from kernelblaster.agent.prompting import reflect_request
from kernelblaster.agent.slots import reflect_slot
from kernelblaster.agent.state import ProblemState, StateUpdate
from kernelblaster.config import SearchPart
from kernelblaster.errors import BudgetExceeded
from kernelblaster.knowledge.changes import KnowledgeChange, Provenance
from kernelblaster.models.base import NoRecordedReply, Request
from kernelblaster.models.replies import UnusableReply, parse_json
from kernelblaster.replay.buffer import Query
from kernelblaster.replay.transition import Transition, telling_changes

CHANGES_PER_ROUND = 5
TRANSITIONS_SHOWN = 40

_CHANGE: TypeAdapter[KnowledgeChange] = TypeAdapter(KnowledgeChange)
_SCHEMA = _CHANGE.json_schema()


class ReflectReply(BaseModel):
    """What the model answers; each change is read on its own."""

    changes: list[Any]


@dataclass(frozen=True)
class ProposedChanges:
    """Changes of a reply that fit the schema, and one line for each that does not."""

    changes: list[KnowledgeChange]
    refused: list[str]


async def reflect(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Ask what the round's transitions teach, apply it, and write what is known now for others to read.

    Done once per round, also over resumes. A round that a budget cut off is reflected on when it is complete.
    """
    if state.cut_off or state.pending:
        return {}
    context = runtime.context
    known = await asyncio.to_thread(context.files.find_reflection, state.round)
    if known is None:
        try:
            known = await _reflect(context, state.round)
        except Unanswered as question:
            return {"pending": [question.request]}
        await asyncio.to_thread(context.files.put_reflection, state.round, known)
        await asyncio.to_thread(context.experience.export)
    context.emit(
        Reflected(
            problem=str(context.problem.id),
            slot=reflect_slot(context, state.round),
            round=state.round,
            changes=known.changes,
            refused=known.refused,
            skipped=known.skipped,
        )
    )
    return {}


async def _reflect(context: ProblemContext, round: int) -> Reflection:
    if not context.config.has(SearchPart.REFLECTION):
        return Reflection(skipped="switched off")
    query = Query(run=context.run, problem=str(context.problem.id), round=round)
    transitions = await asyncio.to_thread(context.experience.transitions.query, query)
    if not transitions:
        return Reflection(skipped="no transitions")
    slot = reflect_slot(context, round)
    request = await frozen_request(context, slot, lambda: _request(context, round, transitions))
    try:
        reply = await ask(context, request)
        proposal = read_proposal(reply.text)
    except BudgetExceeded as exceeded:
        return Reflection(skipped=exceeded.message)
    except NoRecordedReply:
        return Reflection(skipped="the recording has no reflection")
    except UnusableReply as unusable:
        return Reflection(skipped=f"unusable reply: {unusable}")
    provenance = Provenance(run=context.run, model=reply.model, problem=str(context.problem.id))
    lines = await asyncio.to_thread(context.experience.apply, proposal.changes, provenance)
    return Reflection(changes=list(lines), refused=proposal.refused)


def _request(context: ProblemContext, round: int, transitions: list[Transition]) -> Request:
    """The question about a round: those of its transitions that surprised most."""
    shown = sorted(sorted(transitions, key=performance_gap, reverse=True)[:TRANSITIONS_SHOWN], key=lambda t: t.slot)
    lines = [transition_line(transition) for transition in shown]
    states = sorted({transition.state for transition in shown})
    return reflect_request(context, round, lines, states, context.experience.base(), _SCHEMA, CHANGES_PER_ROUND)


def read_proposal(text: str) -> ProposedChanges:
    """Typed changes out of a reply. Raises UnusableReply when it is no JSON object with a list `changes`."""
    proposed = parse_json(text, ReflectReply).changes
    changes, refused = [], []
    for item in proposed[:CHANGES_PER_ROUND]:
        try:
            changes.append(_CHANGE.validate_python(item))
        except ValidationError as error:
            first = error.errors()[0]
            refused.append(f"does not fit the schema: {'.'.join(map(str, first['loc']))}: {first['msg']}"[:200])
    refused += [f"more than {CHANGES_PER_ROUND} changes" for _ in proposed[CHANGES_PER_ROUND:]]
    return ProposedChanges(changes=changes, refused=refused)


def performance_gap(transition: Transition) -> float:
    """|log predicted - log measured| speed-up; a failure counts as its reward. 0 when nothing was predicted."""
    if transition.expected_speedup is None:
        return 0.0
    return abs(math.log(transition.expected_speedup) - transition.reward)


def transition_line(transition: Transition) -> str:
    """One transition for the prompt: state, technique, expected, measured, telling metric changes."""
    expected = f"{transition.expected_speedup:.2f}x" if transition.expected_speedup else "nothing stated"
    if transition.speedup is not None:
        measured = f"{transition.speedup:.2f}x ({transition.decision})"
    else:
        measured = f"{transition.verdict}: {transition.reason[:160]}".rstrip(": ")
    percent = telling_changes(transition.metric_deltas)
    changed = f"; {', '.join(percent)}" if percent else ""
    return f"{transition.state} / {transition.technique}: expected {expected}, measured {measured}{changed}"
