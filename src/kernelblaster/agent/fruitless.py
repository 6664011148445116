"""Why a search has no finalist: what its rollouts met, in one line, and what helps, in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.agent.outcome import OutcomeStatus, RolloutResult, StopReason
from kernelblaster.agent.shared_notes import IDLE_REPLIES
from kernelblaster.config import SearchPart
from kernelblaster.evaluation.results import Verdict

ASK_A_MODEL = (
    "set OPENAI_API_KEY, give --base-url for a server of your own, or --model-kind batch_exchange to answer by files, "
    "and start again"
)
ASK_ANEW = "--retry asks for new replies, --set search.first_attempts=N for more of them"
USE_A_GPU = "start again on a machine with an NVIDIA GPU"
_SILENT = frozenset({StopReason.RECORDING_EXHAUSTED, StopReason.NOTHING_TO_TRY})
_CHOOSING = (SearchPart.RETRIEVAL, SearchPart.CLASSIFICATION, SearchPart.MEMORY, SearchPart.NSIGHT_RULES)
"""Parts that decide what is asked for: a search without one may ask for nothing that was recorded with it."""


@dataclass(frozen=True)
class Replay:
    """A recording that answers in a model's place.

    Attributes:
        holds: whether it has kernels for the problem.
        ablated: parts that are switched off in this search.
    """

    holds: bool
    ablated: Sequence[SearchPart] = ()


@dataclass(frozen=True)
class Fruitless:
    """How a search without a finalist ended.

    Attributes:
        status: `unanswered`, `not_emulatable` or `no_improvement`.
        reason: one line, what happened.
        hint: one line, what to do; empty when there is nothing to advise.
    """

    status: OutcomeStatus
    reason: str
    hint: str = ""


def startless(failed_as: OutcomeStatus, *, written: bool) -> str:
    """What helps a search that has no start to compare with, in a line; empty where that depends.

    Args:
        failed_as: how it ended.
        written: whether the model was to write the start.
    """
    if failed_as is OutcomeStatus.UNANSWERED:
        return ASK_A_MODEL
    return ASK_ANEW if written and failed_as is OutcomeStatus.FAILED else ""


def fruitless(rollouts: Sequence[RolloutResult], replay: Replay | None = None) -> Fruitless:
    """Why none of these rollouts brought a kernel that is faster than the start.

    Args:
        rollouts: that have ended.
        replay: None where a model was asked.
    """
    found = _found(rollouts, replay)
    if not any(rollout.stop is StopReason.REPEATING for rollout in rollouts):
        return found
    reason = f"{found.reason}; the model was not asked further: its last {IDLE_REPLIES} replies held no new kernel"
    return Fruitless(found.status, reason, "ask another model, or set a higher --set model.temperature")


def _found(rollouts: Sequence[RolloutResult], replay: Replay | None) -> Fruitless:
    verdicts = _summed(rollout.verdicts for rollout in rollouts)
    judged, correct = verdicts.total(), verdicts[Verdict.CORRECT]
    if judged == 0:
        return _without_candidates(rollouts, replay)
    if verdicts[Verdict.NOT_EMULATABLE] == judged:
        reason = f"none of {judged} candidates could be executed: each uses what the emulated GPU lacks"
        return Fruitless(OutcomeStatus.NOT_EMULATABLE, reason, USE_A_GPU)
    if correct == 0:
        counted = ", ".join(f"{count} {name}" for name, count in verdicts.most_common())
        return Fruitless(OutcomeStatus.NO_IMPROVEMENT, f"none of {judged} candidates was correct: {counted}")
    reason = f"{judged} candidates, {correct} of them correct, and none was faster than the start beyond noise"
    return Fruitless(OutcomeStatus.NO_IMPROVEMENT, reason)


def _without_candidates(rollouts: Sequence[RolloutResult], replay: Replay | None) -> Fruitless:
    steps = sum(rollout.transitions for rollout in rollouts)
    if steps:
        reason = f"no reply held a kernel: {steps} steps ended without a candidate"
        return Fruitless(OutcomeStatus.NO_IMPROVEMENT, reason, "another model may keep to the format of replies")
    stops = {rollout.stop for rollout in rollouts}
    if replay is not None and stops and stops <= _SILENT:
        return _unanswered(replay)
    named = ", ".join(sorted(stop.replace("_", " ") for stop in stops)) or "no rollout"
    return Fruitless(OutcomeStatus.NO_IMPROVEMENT, f"there was no candidate: rollouts ended by {named}")


def _unanswered(replay: Replay) -> Fruitless:
    if not replay.holds:
        reason = "there was no candidate: the recording has no answer for this problem"
        return Fruitless(OutcomeStatus.UNANSWERED, reason, ASK_A_MODEL)
    off = [part for part in _CHOOSING if part in replay.ablated]
    # Without retrieval no technique is asked for, whatever else is switched off.
    named = SearchPart.RETRIEVAL if SearchPart.RETRIEVAL in off else ", ".join(off)
    reason = "there was no candidate: the recording has answers for this problem, but none to prompts of this search"
    if not named:
        return Fruitless(OutcomeStatus.UNANSWERED, reason, f"search as the recorded search did; or {ASK_A_MODEL}")
    hint = f"leave {named} switched on, for a recording answers only prompts of the same parts; or {ASK_A_MODEL}"
    return Fruitless(OutcomeStatus.UNANSWERED, f"{reason}, which goes without {named}", hint)


def _summed(counts: Iterable[dict[str, int]]) -> Counter[str]:
    return sum((Counter(count) for count in counts), Counter[str]())
