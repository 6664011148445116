"""The node that ends a search: finalists are measured again against the start, checked, and the best one is written.

They are measured in the order of their gains, as long as the next one may still be the fastest: one that was
`CLEARLY_BEHIND` in the search stays unmeasured, unless those before it are refused.

The model may veto a finalist, never approve one: a reply that cannot be read, a missing reply and an empty budget are
no veto, and are recorded as `unverified`. What a sanitizer finds in a finalist that would be written goes back to the
model, once, and the repair is judged and measured like the others. When no finalist beats the start beyond noise,
nothing is written, unless the model wrote the start as well: then that is the final kernel.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from langgraph.runtime import Runtime

from kernelblaster.agent.asking import Unanswered, ask
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.evaluating import FINAL, Judged, judge, sanitize
from kernelblaster.agent.events import FinalistMeasured, Finalized
from kernelblaster.agent.final_kernel import final_kernel_path, final_kernel_text, process_pairs_text, without_samples
from kernelblaster.agent.fruitless import Replay, fruitless, startless
from kernelblaster.agent.outcome import Conclusion, Finalist, Incumbent, OutcomeStatus
from kernelblaster.agent.prompting import mend_request, verify_request
from kernelblaster.agent.remembering import remember_winner
from kernelblaster.agent.review import Review, read_review
from kernelblaster.agent.slots import problem_slot
from kernelblaster.agent.state import Failure, ProblemState, StateUpdate
from kernelblaster.config import SearchPart
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import NoRecordedReply
from kernelblaster.models.edits import parse_candidate
from kernelblaster.models.replies import UnusableReply
from kernelblaster.storage.atomic import write_atomically

FINALISTS = 3
CLEARLY_BEHIND = 1.1
"""A kernel whose gain in the search is so many times below what a finalist was measured at is not measured again."""
FINDINGS_SHOWN = 12
"""Findings of the sanitizers that a repair is shown."""


@dataclass(frozen=True)
class _Measured:
    finalist: Finalist
    judged: Judged


async def finalize(state: ProblemState, runtime: Runtime[ProblemContext]) -> StateUpdate:
    """Choose, check and write the final kernel, and say how the search ended."""
    context = runtime.context
    try:
        conclusion = await _conclude(context, state)
    except Unanswered as question:
        return {"pending": [question.request]}
    winner = next((f for f in conclusion.finalists if f.sha256 == conclusion.final_sha256), None)
    context.emit(
        Finalized(
            problem=str(context.problem.id),
            slot=problem_slot(context, "final"),
            status=conclusion.status,
            reason=conclusion.reason,
            speedup=winner.comparison.speedup if winner and winner.comparison else None,
            final_sha256=conclusion.final_sha256,
        )
    )
    return {"conclusion": conclusion}


async def _conclude(context: ProblemContext, state: ProblemState) -> Conclusion:
    if state.start is None or state.failure is not None:
        reason = state.failure or "the start was not evaluated"
        hint = startless(state.failed_as, written=not context.problem.has_start)
        return Conclusion(status=state.failed_as, reason=reason, hint=hint)
    unmeasured = contenders(state)
    known = {one.sha256 for one in unmeasured}
    waiting: list[_Measured] = []
    finalists: list[Finalist] = []
    winner: _Measured | None = None
    while waiting or (unmeasured and winner is None):
        while unmeasured and not _behind(unmeasured[0], winner, waiting):
            waiting.append(await _measure(context, state.start, unmeasured.pop(0)))
        waiting.sort(key=_rank)
        one = waiting.pop()
        finalist, mended = one.finalist, None
        if finalist.rejected is None and winner is not None:
            finalist = finalist.model_copy(update={"rejected": "slower than the final kernel"})
        if finalist.rejected is None:
            finalist, mended = await _examine(context, state.start, finalist)
        if mended is not None and mended.finalist.sha256 not in known:
            known.add(mended.finalist.sha256)
            waiting.append(mended)
        if finalist.rejected is None:
            winner = _Measured(finalist=finalist, judged=one.judged)
        finalists.append(finalist)
        context.emit(_event(context, finalist))
    final = winner or await _written_start(context, state, state.start)
    await asyncio.to_thread(_publish, context, final)
    if winner is not None:
        await asyncio.to_thread(_remember, context, winner)
    return _conclusion(context, state, finalists, winner, final)


def _behind(incumbent: Incumbent, winner: _Measured | None, waiting: list[_Measured]) -> bool:
    """Whether a kernel is clearly slower than one that was measured and may be the final one."""
    good = [one for one in [*([winner] if winner else []), *waiting] if one.finalist.rejected is None]
    return any(incumbent.gain * CLEARLY_BEHIND < _rank(one)[0] for one in good)


async def _written_start(context: ProblemContext, state: ProblemState, start: Incumbent) -> _Measured | None:
    """The start as final kernel, where the model wrote it and neither sanitizers nor a veto are against it."""
    if state.written is None:
        return None
    evaluation = await asyncio.to_thread(context.files.evaluation, start.evaluation)
    finalist = Finalist(sha256=start.sha256, gain=start.gain, verdict=evaluation.verdict)
    if await _sanitize(context, start.sha256):
        return None
    reviewed = await _reviewed(context, finalist)
    judged = Judged(evaluation=evaluation, key=start.evaluation, reused=True)
    return None if reviewed.rejected else _Measured(finalist=reviewed, judged=judged)


def contenders(state: ProblemState) -> list[Incumbent]:
    """The distinct kernels with the largest measured gain, best first: recalled, or reached by rollouts."""
    best: dict[str, Incumbent] = {}
    recalled = state.recalled.incumbent if state.recalled else None
    for incumbent in [*([recalled] if recalled else []), *(result.incumbent for result in state.finished)]:
        known = best.get(incumbent.sha256)
        if incumbent.gain > 1 and (known is None or incumbent.gain > known.gain):
            best[incumbent.sha256] = incumbent
    # Equal gains: by content, for the order in which chains end is chance.
    return sorted(best.values(), key=lambda incumbent: (incumbent.gain, incumbent.sha256), reverse=True)[:FINALISTS]


async def _measure(context: ProblemContext, start: Incumbent, incumbent: Incumbent) -> _Measured:
    """Against the start, in fresh processes."""
    judged = await judge(context, incumbent.sha256, baseline=start.sha256, purpose=FINAL)
    evaluation = judged.evaluation
    finalist = Finalist(
        sha256=incumbent.sha256,
        gain=incumbent.gain,
        verdict=evaluation.verdict,
        comparison=without_samples(evaluation.comparison) if evaluation.comparison else None,
    )
    if not evaluation.correct:
        rejected = f"measured again it is {evaluation.verdict}: {evaluation.reason}"
    elif not finalist.faster:
        rejected = _not_faster(finalist)
    else:
        rejected = None
    return _Measured(finalist=finalist.model_copy(update={"rejected": rejected}), judged=judged)


def _not_faster(finalist: Finalist) -> str:
    comparison = finalist.comparison
    reason = "measured again it does not beat the start"
    return f"{reason}: {process_pairs_text(comparison)}" if comparison is not None and comparison.sessions else reason


def _rank(one: _Measured) -> tuple[float, str]:
    """By measured speed-up, then by content."""
    return one.finalist.comparison.speedup if one.finalist.comparison else 0.0, one.finalist.sha256


async def _examine(context: ProblemContext, start: Incumbent, finalist: Finalist) -> tuple[Finalist, _Measured | None]:
    """The finalist with what sanitizers and the model found, and its repair if there is one.

    What a sanitizer finds goes back to the model once; what comes of that is not repaired again.
    """
    findings = await _sanitize(context, finalist.sha256)
    if not findings:
        return await _reviewed(context, finalist), None
    mended = None if finalist.mends else await _mend(context, start, finalist, findings)
    return finalist.model_copy(update={"rejected": f"{Verdict.SANITIZER_ERROR}: {findings[0]}"}), mended


async def _mend(context: ProblemContext, start: Incumbent, finalist: Finalist, findings: list[str]) -> _Measured | None:
    """Ask for a repair, judge and measure it like any finalist; None when there is none."""
    failure = Failure(kind=Verdict.SANITIZER_ERROR, reason=findings[0], log="\n".join(findings[:FINDINGS_SHOWN]))
    speedup = finalist.comparison.speedup if finalist.comparison else 1.0
    request = await asyncio.to_thread(mend_request, context, finalist.sha256, speedup, failure)
    try:
        reply = await ask(context, request)
        base = context.files.candidate(finalist.sha256) if context.config.has(SearchPart.EDITS) else None
        source = parse_candidate(reply.text, base).source
    except (BudgetExceeded, NoRecordedReply, UnusableReply):
        return None
    sha256 = await asyncio.to_thread(context.files.put_candidate, source)
    if sha256 == finalist.sha256:
        return None
    incumbent = Incumbent(sha256=sha256, evaluation="", gain=finalist.gain)
    measured = await _measure(context, start, incumbent)
    repaired = measured.finalist.model_copy(update={"mends": finalist.sha256})
    return _Measured(finalist=repaired, judged=measured.judged)


async def _sanitize(context: ProblemContext, sha256: str) -> list[str]:
    return [
        f"{finding.tool}: {finding.message}" + (f" ({finding.location})" if finding.location else "")
        for finding in await sanitize(context, sha256)
    ]


async def _reviewed(context: ProblemContext, finalist: Finalist) -> Finalist:
    """The finalist with the model's review."""
    if not context.config.has(SearchPart.REVIEW):
        return finalist
    review, reason = await _review(context, finalist.sha256)
    told = f"{review}: {reason}" if reason else str(review)
    return finalist.model_copy(update={"review": told, "rejected": told if review is Review.VETOED else None})


async def _review(context: ProblemContext, sha256: str) -> tuple[Review, str]:
    request = await asyncio.to_thread(verify_request, context, sha256)
    try:
        reply = await ask(context, request)
    except BudgetExceeded:
        return Review.UNVERIFIED, "a budget was reached"
    except NoRecordedReply:
        return Review.UNVERIFIED, "the recording has no answer"
    return read_review(reply.text)


def _publish(context: ProblemContext, final: _Measured | None) -> None:
    path = final_kernel_path(context.directory)
    if final is None:
        path.unlink(missing_ok=True)
        return
    source = context.files.candidate(final.finalist.sha256)
    write_atomically(path, final_kernel_text(source, final.judged.evaluation, context.facts, final.finalist.review))


def _remember(context: ProblemContext, winner: _Measured) -> None:
    remember_winner(context, context.files.candidate(winner.finalist.sha256), winner.judged.evaluation)


def _conclusion(
    context: ProblemContext,
    state: ProblemState,
    finalists: list[Finalist],
    winner: _Measured | None,
    final: _Measured | None,
) -> Conclusion:
    hint = ""
    if winner is not None and winner.finalist.comparison is not None:
        comparison = winner.finalist.comparison
        kind = ", modelled" if comparison.candidate.modelled else ""
        status, reason = OutcomeStatus.IMPROVED, f"{comparison.speedup:.3f}x over the start{kind}"
        if state.recalled is not None and winner.finalist.sha256 == state.recalled.candidate:
            reason += "; recalled from the knowledge base"
    elif finalists:
        status, reason = OutcomeStatus.NO_IMPROVEMENT, finalists[0].rejected or ""
    else:
        found = fruitless(state.finished, _replay(context))
        status, reason, hint = found.status, found.reason, found.hint
    if winner is None and final is not None:
        reason += "; the first kernel that the model wrote is the final one"
    if state.cut_off:
        status, reason, hint = OutcomeStatus.BUDGET, f"a budget ended the search; {reason}", ""
    return Conclusion(
        status=status,
        reason=reason,
        hint=hint,
        finalists=finalists,
        final_sha256=final.finalist.sha256 if final else None,
    )


def _replay(context: ProblemContext) -> Replay | None:
    """What is known of the recording that answers; None where a model is asked."""
    if context.recording is None:
        return None
    tags = {"problem": str(context.problem.id), "precision": str(context.precision)}
    return Replay(holds=bool(context.model.answerable(tags)), ablated=context.config.ablate)


def _event(context: ProblemContext, finalist: Finalist) -> FinalistMeasured:
    return FinalistMeasured(
        problem=str(context.problem.id),
        slot=problem_slot(context, f"final/{finalist.sha256[:16]}"),
        candidate=finalist.sha256,
        verdict=finalist.verdict,
        speedup=finalist.comparison.speedup if finalist.comparison else None,
        decision=finalist.comparison.decision if finalist.comparison else None,
        rejected=finalist.rejected,
        review=finalist.review,
    )
