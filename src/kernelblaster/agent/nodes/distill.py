"""The node that draws lessons from pairs of slow and fast code, after each generation (for chains: each round).

Of the pairs that are apart beyond noise the strongest gain and the strongest loss come first. A short call per pair
asks what transfers; the knowledge base decides what it adds. Nothing here stops a search: a reply that cannot be had
or read is no lesson, and one that comes later (batch exchange) is read by the next start.
"""

from __future__ import annotations

import asyncio
import difflib
import math
from collections.abc import Sequence
from functools import partial

from langgraph.runtime import Runtime
from pydantic import BaseModel

from kernelblaster.agent.asking import Unanswered, ask, frozen_request
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.events import LessonsDrawn
from kernelblaster.agent.files import Distillation, DrawnLesson
from kernelblaster.agent.prompting import PairShown, lesson_request
from kernelblaster.agent.slots import lesson_slot, lessons_slot
from kernelblaster.agent.sources import cut_middle, strip_comments
from kernelblaster.agent.state import ProblemState, Spent, StateUpdate
from kernelblaster.config import SearchPart
from kernelblaster.errors import BudgetExceeded, ModelError
from kernelblaster.knowledge.changes import Provenance
from kernelblaster.knowledge.pairs import PairFinding, is_telling, known_for
from kernelblaster.models.base import Reply, Request
from kernelblaster.models.replies import UnusableReply, parse_json
from kernelblaster.replay.buffer import Query
from kernelblaster.replay.transition import Transition, telling_changes

DIFF_CHARACTERS = 4000
"""Of a pair's difference that the model is shown."""
CHANGES_SHOWN = 6


class LessonReply(BaseModel):
    """What the model answers about a pair."""

    lesson: str = ""
    same_as: str = ""
    contradicts: str = ""


async def distill(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Draw lessons from what has just been judged, once per generation, also over resumes."""
    context = runtime.context
    if state.cut_off or state.pending or not context.config.has(SearchPart.PAIR_LESSONS):
        return {}
    place = (state.round, state.generation)
    known = await asyncio.to_thread(context.files.find_distillation, *place)
    if known is None:
        try:
            known = await _distill(context, *place)
        except Unanswered as question:
            return {"unhurried": [question.request]}
        await asyncio.to_thread(context.files.put_distillation, *place, known)
    if known.drawn or known.skipped:
        context.emit(_event(context, state, known))
    return {}


async def _distill(context: ProblemContext, round: int, generation: int) -> Distillation:
    """The lessons of a generation. Raises Unanswered while a reply is pending."""
    query = Query(run=context.run, problem=str(context.problem.id), round=round)
    transitions = await asyncio.to_thread(context.experience.transitions.query, query)
    judged = [one for one in transitions if not generation or one.step == generation]
    found = Distillation()
    for transition in chosen_pairs(judged, context.config.lesson_pairs):
        try:
            request = await frozen_request(
                context, lesson_slot(transition.slot), partial(_request, context, transition)
            )
            reply = await ask(context, request)
        except (ModelError, BudgetExceeded) as failed:
            found = found.plus(skipped=f"{transition.slot}: {failed.message}")
            continue
        drawn, skipped = await asyncio.to_thread(_learn, context, transition, reply)
        found = found.plus(drawn=drawn, skipped=skipped, spent=Spent().plus(reply.usage))
    return found


def chosen_pairs(transitions: Sequence[Transition], most: int) -> list[Transition]:
    """The strongest gain and the strongest loss in turns, one of each technique in each state and direction."""
    best: dict[tuple[str, str, bool], Transition] = {}
    for one in sorted(filter(is_telling, transitions), key=lambda one: (-_distance(one), one.slot)):
        best.setdefault((one.state, one.credited, one.succeeded), one)
    gains, losses = ([one for one in best.values() if one.succeeded is faster] for faster in (True, False))
    in_turns = [one for rank in range(len(best)) for side in (gains, losses) for one in side[rank : rank + 1]]
    return in_turns[:most]


def _distance(transition: Transition) -> float:
    return abs(math.log(transition.speedup)) if transition.speedup else 0.0


def _request(context: ProblemContext, transition: Transition) -> Request:
    known = known_for(context.experience.base().document, transition)
    changes = telling_changes(transition.metric_deltas, CHANGES_SHOWN)
    shown = PairShown(diff=_difference(context, transition), changes=changes, known=known)
    return lesson_request(context, lesson_slot(transition.slot), transition, shown)


def _difference(context: ProblemContext, transition: Transition) -> str:
    """What was changed, without comments and with one line around each change."""
    hashes = (transition.parent_sha256, transition.candidate_sha256 or "")
    before, after = (strip_comments(context.files.candidate(sha256)).splitlines() for sha256 in hashes)
    lines = list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=1))
    return cut_middle("\n".join(lines[2:]), DIFF_CHARACTERS)


def _learn(context: ProblemContext, transition: Transition, reply: Reply) -> tuple[list[DrawnLesson], str]:
    """What the reply did to the knowledge base, or why it did nothing."""
    try:
        said = parse_json(reply.text, LessonReply)
    except UnusableReply as unusable:
        return [], f"{transition.slot}: unusable reply: {unusable}"[:300]
    finding = PairFinding(text=said.lesson, same_as=said.same_as, contradicts=said.contradicts)
    provenance = Provenance(run=context.run, model=reply.model, problem=str(context.problem.id))
    effects = context.experience.learn_pair(transition, finding, provenance)
    drawn = [
        DrawnLesson(
            step=transition.slot,
            state=transition.state,
            technique=transition.credited,
            speedup=transition.speedup or 1.0,
            low=transition.speedup_low or 1.0,
            high=transition.speedup_high or 1.0,
            effect=effect.effect,
            lesson=effect.lesson,
            text=effect.text,
        )
        for effect in effects
    ]
    return drawn, "" if drawn else f"{transition.slot}: no lesson"


def _event(context: ProblemContext, state: ProblemState, known: Distillation) -> LessonsDrawn:
    return LessonsDrawn(
        problem=str(context.problem.id),
        slot=lessons_slot(context, state.round, state.generation),
        drawn=known.drawn,
        skipped=known.skipped,
        prompt_tokens=known.spent.prompt_tokens,
        completion_tokens=known.spent.completion_tokens,
        dollars=known.spent.dollars,
    )
