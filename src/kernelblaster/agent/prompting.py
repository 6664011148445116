"""Builds the requests of the workflow from typed state. The same state gives the same messages, to the character.

Nothing here reads the clock, draws random numbers or looks at statistics that other rollouts change: a request that
was answered before a kill is the same request after it. The two that show the knowledge base, `classify_request` and
`reflect_request`, are built once (`asking.frozen_request`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.hot_lines import hot_lines
from kernelblaster.agent.launch import launch_summary
from kernelblaster.agent.rendering import render
from kernelblaster.agent.review import bare_code
from kernelblaster.agent.slots import (
    attempt_slot,
    classify_slot,
    first_kernel_slot,
    problem_slot,
    reflect_slot,
    rollout_slot,
)
from kernelblaster.agent.sources import cut_middle
from kernelblaster.agent.state import Attempt, Choice, Failure, FailureKind, RolloutState, StepDiagnosis, Tried
from kernelblaster.agent.summary import budget_summary, gpu_summary, profile_summary, time_summary
from kernelblaster.agent.task import launcher_of, reference_values, task_values
from kernelblaster.config import SearchPart
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.decisions import Classification
from kernelblaster.knowledge.pairs import LONGEST, SHORTEST
from kernelblaster.knowledge.schema import Lesson
from kernelblaster.models.base import Message, Purpose, Request
from kernelblaster.replay.transition import Transition

_LOG_CHARACTERS = 2400
_UNUSABLE_CHARACTERS = 1500
_EDITS_CHARACTERS = 6000
_PARENT = "the kernel to improve"
_LAST_FILE = "your file above"
"""What edits refer to, in words."""
TRIED_SHOWN = 8
"""Latest attempts on a kernel that a prompt tells."""


def request_tags(context: ProblemContext, state: RolloutState) -> dict[str, str]:
    """Facts of a step that a recording may match on, as far as they are known."""
    tags = {
        "problem": str(context.problem.id),
        "precision": str(context.precision),
        "parent_sha256": state.incumbent.sha256,
    }
    if state.diagnosis is not None:
        tags["state"] = state.diagnosis.state
    if state.choice is not None:
        tags["technique"] = state.choice.technique
    return tags


def generate_request(context: ProblemContext, state: RolloutState, number: int) -> Request:
    """Ask for a candidate (`number` 0) or for the repair of the attempt before."""
    messages = [
        Message(role="system", content=render("system")),
        Message(role="user", content=_generate_prompt(context, state)),
    ]
    tags = request_tags(context, state)
    failed = state.attempt
    if number > 0 and failed is not None and failed.failure is not None:
        slot = attempt_slot(context, state, failed.number)
        messages.append(Message(role="assistant", content=_failed_reply(context, slot, failed)))
        messages.append(
            Message(role="user", content=_repair_prompt(context, failed.failure, failed.base_failure, _edited(state)))
        )
        tags |= {"failure": failed.failure.kind}
        if failed.candidate:
            tags |= {"failed_sha256": failed.candidate}
    return Request(
        slot=attempt_slot(context, state, number),
        purpose=Purpose.REPAIR if number else Purpose.GENERATE,
        messages=tuple(messages),
        tags=tags,
    )


def first_kernel_request(context: ProblemContext, number: int, failed: Attempt | None) -> Request:
    """Ask for the first kernel of a problem that has none (`number` 0), or for the repair of the attempt before."""
    messages = [
        Message(role="system", content=render("first_system")),
        Message(role="user", content=render("first_kernel", **task_values(context))),
    ]
    tags = {"problem": str(context.problem.id), "precision": str(context.precision)}
    if failed is not None and failed.failure is not None:
        failure = failed.failure
        said = _failed_reply(context, first_kernel_slot(context, failed.number), failed)
        told = render("first_repair", **_failure_values(failure, failed.base_failure))
        messages += [Message(role="assistant", content=said), Message(role="user", content=told)]
        tags |= {"failure": failure.kind} | ({"failed_sha256": failed.candidate} if failed.candidate else {})
    return Request(
        slot=first_kernel_slot(context, number),
        purpose=Purpose.REPAIR if number else Purpose.GENERATE,
        messages=tuple(messages),
        tags=tags,
    )


def _generate_prompt(context: ProblemContext, state: RolloutState) -> str:
    if state.diagnosis is None or state.choice is None:
        raise ValueError("generate runs after retrieve")
    evaluation = context.files.evaluation(state.incumbent.evaluation)
    has, parent = context.config.has, context.files.candidate(state.incumbent.sha256)
    return render(
        "generate",
        **task_values(context),
        parent=parent.strip(),
        profile=profile_summary(evaluation) if has(SearchPart.PROFILE) else "",
        budget=budget_summary(evaluation, context.facts) if has(SearchPart.PROFILE) else "",
        launch=launch_summary(evaluation, context.facts) if has(SearchPart.TILES) else "",
        hot_lines=hot_lines(evaluation, parent) if has(SearchPart.HOT_LINES) else [],
        time=time_summary(evaluation),
        diagnosis=_shown_diagnosis(context, state.diagnosis),
        choice=state.choice if has(SearchPart.RETRIEVAL) else None,
        experience=_experience(state.choice, context.facts.arch) if has(SearchPart.EXPERIENCE) else "",
        sweep=_swept_variants(context),
        edited=_PARENT if has(SearchPart.EDITS) else "",
        core=state.choice.core,
        donor=context.files.candidate(state.donor).strip() if state.donor else "",
        whose="on the way here and on this kernel" if state.generation else "in this chain",
        tried=[_tried_line(tried) for tried in state.tried[-TRIED_SHOWN:] if has(SearchPart.HISTORY)],
        tried_by_others=[_tried_line(tried) for tried in tried_by_others(context, state)],
    )


def _swept_variants(context: ProblemContext) -> int:
    """How many variants of a reply are tried; 0 where none are."""
    swept = context.config.has(SearchPart.SWEEP) and not context.problem.weakly_verified
    return context.config.sweep_variants if swept else 0


def _shown_diagnosis(context: ProblemContext, diagnosis: StepDiagnosis) -> StepDiagnosis | None:
    """The diagnosis as prompts tell it; its evidence cites counters."""
    if not context.config.has(SearchPart.CLASSIFICATION):
        return None
    return diagnosis if context.config.has(SearchPart.PROFILE) else diagnosis.model_copy(update={"evidence": []})


def mend_request(context: ProblemContext, sha256: str, speedup: float, failure: Failure) -> Request:
    """Ask for the repair of a finalist that is fast and right, and in which a sanitizer found something."""
    messages = (
        Message(role="system", content=render("system")),
        Message(role="user", content=render("finalist", **task_values(context), speedup=f"{speedup:.2f}")),
        Message(role="assistant", content=_fenced(context, sha256)),
        Message(role="user", content=_repair_prompt(context, failure, None, _LAST_FILE)),
    )
    return Request(
        slot=problem_slot(context, f"mend/{sha256[:16]}"),
        purpose=Purpose.REPAIR,
        messages=messages,
        tags={
            "problem": str(context.problem.id),
            "precision": str(context.precision),
            "failure": failure.kind,
            "failed_sha256": sha256,
        },
    )


def _failed_reply(context: ProblemContext, slot: str, failed: Attempt) -> str:
    """The reply to be repaired: its source, or what it said where it held none, below the file that it edits."""
    if failed.candidate is not None:
        return _fenced(context, failed.candidate)
    edited = failed.failure is not None and failed.failure.kind == FailureKind.INAPPLICABLE_EDITS
    text = cut_middle(context.files.reply_text(slot), _EDITS_CHARACTERS if edited else _UNUSABLE_CHARACTERS)
    file = f"{_fenced(context, failed.base)}\n" if failed.base else ""
    return file + (text or "(empty reply)")


def _fenced(context: ProblemContext, sha256: str) -> str:
    return f"```cuda\n{context.files.candidate(sha256).strip()}\n```"


def _edited(state: RolloutState) -> str:
    return _PARENT if state.edited == state.incumbent.sha256 else _LAST_FILE


def _repair_prompt(context: ProblemContext, failure: Failure, before: Failure | None, edited: str) -> str:
    """`before`: of the file that is shown above, where the failed reply held none."""
    shown = edited if context.config.has(SearchPart.EDITS) else ""
    return render("repair", **_failure_values(failure, before), edited=shown)


def _failure_values(failure: Failure, before: Failure | None) -> dict[str, object]:
    """What prompts for a repair tell of a failed reply, and of the last file where that held none."""
    return {
        "kind": failure.kind,
        "reason": failure.reason,
        "log": cut_middle(failure.log, _LOG_CHARACTERS),
        "before": before and before.model_copy(update={"log": cut_middle(before.log, _LOG_CHARACTERS)}),
    }


def classify_request(
    context: ProblemContext,
    state: RolloutState,
    base: KnowledgeBase,
    evaluation: Evaluation,
    ruled: Classification,
) -> Request:
    """Ask which of the known states limits the parent."""
    leaning = ", ".join(f"{cause.state} {cause.confidence:.2f}" for cause in ruled.causes)
    prompt = render(
        "classify",
        gpu=gpu_summary(context.facts),
        profile=profile_summary(evaluation) if context.config.has(SearchPart.PROFILE) else "",
        time=time_summary(evaluation),
        leaning=leaning,
        states=[
            {"id": name, "primary_bottleneck": entry.primary_bottleneck} for name, entry in sorted(base.states.items())
        ],
    )
    return Request(
        slot=classify_slot(context, state),
        purpose=Purpose.CLASSIFY,
        messages=(Message(role="user", content=prompt),),
        tags=request_tags(context, state),
    )


def verify_request(context: ProblemContext, sha256: str) -> Request:
    """Ask for a veto against a final kernel. What could hold sentences is removed, the rest is fenced as data."""
    prompt = render(
        "verify",
        **reference_values(context),
        launcher=launcher_of(context),
        fence=f"=====DATA-{sha256[:16]}=====",
        source=bare_code(context.files.candidate(sha256)),
    )
    return Request(
        slot=problem_slot(context, f"verify/{sha256[:16]}"),
        purpose=Purpose.VERIFY,
        messages=(Message(role="user", content=prompt),),
        tags={"problem": str(context.problem.id), "precision": str(context.precision), "candidate_sha256": sha256},
    )


def reflect_request(
    context: ProblemContext,
    round: int,
    lines: list[str],
    seen_states: list[str],
    base: KnowledgeBase,
    schema: Mapping[str, object],
    limit: int,
) -> Request:
    """Ask for typed changes to the knowledge base that a round's transitions support."""
    prompt = render(
        "reflect",
        problem=context.problem.id,
        op_family=context.op_family,
        precision=context.precision,
        gpu=f"{context.facts.name} ({context.facts.arch})",
        transitions=lines,
        states=sorted(base.states),
        techniques=sorted(base.techniques),
        thresholds=base.movable_thresholds(seen_states),
        limit=limit,
        schema=json.dumps(schema, separators=(",", ":")),
    )
    return Request(
        slot=reflect_slot(context, round),
        purpose=Purpose.REFLECT,
        messages=(Message(role="user", content=prompt),),
        tags={"problem": str(context.problem.id), "precision": str(context.precision)},
    )


@dataclass(frozen=True)
class PairShown:
    """What a prompt tells of a measured pair beside its transition."""

    diff: str
    changes: list[str]
    known: tuple[Lesson, ...]


def lesson_request(context: ProblemContext, slot: str, transition: Transition, shown: PairShown) -> Request:
    """Ask what of a measured change transfers to other kernels."""
    figures = (transition.speedup or 1.0, transition.speedup_low or 1.0, transition.speedup_high or 1.0)
    prompt = render(
        "lesson",
        op_family=context.op_family,
        precision=context.precision,
        gpu=f"{context.facts.name} ({context.facts.arch})",
        measured="{:.2f}x as fast as before [{:.2f}, {:.2f}]".format(*figures),
        gained=transition.succeeded,
        state=transition.state,
        technique=transition.credited,
        changes=shown.changes,
        diff=shown.diff,
        known=shown.known,
        shortest=SHORTEST,
        longest=LONGEST,
    )
    return Request(
        slot=slot,
        purpose=Purpose.LESSON,
        messages=(Message(role="user", content=prompt),),
        tags={
            "problem": str(context.problem.id),
            "precision": str(context.precision),
            "parent_sha256": transition.parent_sha256,
            "candidate_sha256": transition.candidate_sha256 or "",
        },
    )


def _experience(choice: Choice, arch: str) -> str:
    if choice.evidence_count == 0:
        return f"Not tried here before; a first guess: {choice.p_correct:.0%} correct."
    return (
        f"Experience ({choice.backed_off_to}, asked for {arch}): {choice.evidence_count} attempts, "
        f"{choice.p_correct:.0%} expected to be correct, then at {choice.expected_speedup:.2f}x the speed of others."
    )


def tried_by_others(context: ProblemContext, state: RolloutState) -> list[Tried]:
    """What other rollouts have tried on the same kernel."""
    if not context.config.has(SearchPart.HISTORY):
        return []
    return context.notes.of_others(state.incumbent.sha256, rollout_slot(context, state.round, state.index))


def _tried_line(tried: Tried) -> str:
    expected = f", expected {tried.stated_speedup:.2f}x" if tried.stated_speedup else ""
    measured = f" {tried.speedup:.2f}x" if tried.speedup else ""
    kept = ", accepted" if tried.accepted else ""
    why = f" ({tried.reason})" if tried.reason else ""
    changes = f"; {', '.join(tried.changes)}" if tried.changes else ""
    return f"{tried.technique}: {tried.outcome}{measured}{expected}{kept}{why}{changes}"
