"""Kernels answered in several turns: what the judge said of a reply becomes part of the next prompt.

A prompt's history holds the kernels that were judged and what was said of them, and no thoughts. Two kinds of credit:

`returns`: a group of dialogues on one prompt is held within one step. Each turn is a sample of its own, as in Kevin
(arXiv 2507.11948), whose reward is its discounted return, compared with the returns of the dialogues of its group that
reached the same turn.

`immediate`: the next turn is a prompt of a later step, asked as often as any other prompt, and rewarded by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.rendering import templates
from kernelblaster.agent.sources import cut_middle
from kernelblaster.environment.feedback import feedback
from kernelblaster.environment.rewards import Reward, RewardScheme
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.models.base import Message
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.replies import read_completion
from kernelblaster.training.rollouts import JudgedCompletion, Rollout, RolloutStore
from kernelblaster.training.rows import PromptRow, ReplyForm

LATEST_STEPS = 8
"""Rollouts of so many steps are gone on from with immediate credit: the policy that wrote older ones was another."""
_NO_KERNEL = "(no kernel)"

Evaluations = Callable[[Rollout], Evaluation | None]
"""The evaluation of a rollout as it lies on disk; None where nothing was evaluated."""
Fits = Callable[[PromptRow], bool]
"""Whether a prompt is short enough to be asked."""


@dataclass(frozen=True)
class Asked:
    """A prompt, with what was said since.

    Attributes:
        base: the first prompt.
        turn: turns before this one.
        exchanges: the history that is told: an answer and what was said of it, per turn.
        follows: step and place of the rollout that is answered to; None in the first turn.
    """

    base: PromptRow
    turn: int = 0
    exchanges: tuple[tuple[Message, Message], ...] = ()
    follows: tuple[int, int] | None = None

    @property
    def row(self) -> PromptRow:
        """The prompt with its history."""
        if not self.exchanges:
            return self.base
        history = (message for exchange in self.exchanges for message in exchange)
        return self.base.model_copy(update={"prompt": (*self.base.prompt, *history)})


def discounted_returns(rewards: Sequence[float | None], turns: int, gamma: float) -> list[float | None]:
    """The return of each turn of a dialogue: sum over later turns i >= t of gamma^(i - t) times reward i.

    A dialogue that ended before `turns` keeps its last reward in the turns that it did not take. So none gains by
    being correct later, or by ending with a cheat before further failures are counted. Where the last reward is not
    known, for the machine failed, no return is.

    Args:
        rewards: of the turns taken, one at least.
        turns: that a dialogue may take.
        gamma: discount, 0 to 1.
    """
    found: list[float | None] = []
    last = rewards[-1]
    following = None if last is None else last * sum(gamma**more for more in range(1, turns - len(rewards) + 1))
    for reward in reversed(rewards):
        following = None if reward is None or following is None else reward + following
        found.append(following)
        following = None if following is None else gamma * following
    return found[::-1]


def goes_on(judged: JudgedCompletion, turn: int, turns: int, scheme: RewardScheme) -> bool:
    """Whether another turn can gain anything: none was a cheat, none has all there is, and the judge could judge."""
    if turn + 1 >= turns or judged.hack or judged.reward is None:
        return False
    return judged.reward < scheme.highest


class NextTurns:
    """Makes the prompt of a next turn from what was judged.

    Args:
        scheme: of the stage.
        turns: that a dialogue may take.
        characters: of what is said of an answer, at most.
        against: what speed-ups are against, in words.
        evaluations: finds what was judged.
        fits: whether a prompt may be asked.
    """

    def __init__(
        self, scheme: RewardScheme, turns: int, characters: int, against: str, evaluations: Evaluations, fits: Fits
    ) -> None:
        self._scheme = scheme
        self._turns = turns
        self._characters = characters
        self._against = against
        self._evaluations = evaluations
        self._fits = fits

    def after(self, asked: Asked, rollout: Rollout) -> Asked | None:
        """What is asked after an answer; None where the dialogue is over, or has no room for it.

        The oldest exchanges are left out where all do not fit.
        """
        if not goes_on(rollout, asked.turn, self._turns, self._scheme):
            return None
        exchanges = (*asked.exchanges, (self._answer(asked.base, rollout), self._said(asked.base, rollout)))
        for first in range(len(exchanges)):
            found = Asked(asked.base, asked.turn + 1, exchanges[first:], (rollout.step, rollout.index))
            if self._fits(found.row):
                return found
        return None

    def _answer(self, row: PromptRow, rollout: Rollout) -> Message:
        source = read_completion(rollout.completion, row).source
        if source is None:
            content = _NO_KERNEL
        elif row.reply is ReplyForm.CHOICE:
            content = rollout.completion.strip()
        else:
            fence = "python" if row.language is CandidateLanguage.TRITON else "cuda"
            content = f"```{fence}\n{source.strip()}\n```"
        return Message(role="assistant", content=content)

    def _said(self, row: PromptRow, rollout: Rollout) -> Message:
        evaluation = self._evaluations(rollout)
        if evaluation is None:
            told = rollout.reason
        else:
            source = read_completion(rollout.completion, row).source or ""
            reward = Reward(rollout.reward or 0.0, rollout.parts)
            told = feedback(evaluation, source, None, reward, against=self._against)
        told = told if len(told) <= self._characters else cut_middle(told, self._characters)
        folder = Path(__file__).with_name("prompts")
        text = (
            templates(folder)
            .get_template("next_turn.j2")
            .render(told=told, correct=rollout.verdict == Verdict.CORRECT, choice=row.reply is ReplyForm.CHOICE)
        )
        return Message(role="user", content=text.strip())


def asked_by(rollout: Rollout, rows: Mapping[str, PromptRow], store: RolloutStore, next_turns: NextTurns) -> Asked:
    """What a stored rollout was asked, its earlier turns made again from what is stored.

    Raises KeyError where its first prompt is not among `rows` (digest -> row).
    """
    if rollout.follows is None:
        return Asked(rows[rollout.prompt])
    before = store.rollout(*rollout.follows)
    if before is None:
        raise KeyError(f"step {rollout.follows[0]}")
    found = next_turns.after(asked_by(before, rows, store, next_turns), before)
    if found is None or found.row.digest != rollout.prompt:
        raise KeyError(rollout.prompt)
    return found


def draw_next_turn(
    rows: Mapping[str, PromptRow],
    store: RolloutStore,
    next_turns: NextTurns,
    *,
    step: int,
    turns: int,
    rng: random.Random,
) -> Asked | None:
    """A turn that goes on from a rollout of one of the `LATEST_STEPS` steps before this one; None where none does.

    What is drawn follows from `rng` and from what is stored of earlier steps, so that a stage that resumes asks the
    same.
    """
    if rng.random() >= (turns - 1) / turns:
        return None
    latest = [one for one in store.rollouts if step - LATEST_STEPS <= one.step < step]
    for rollout in rng.sample(latest, len(latest)):
        try:
            found = next_turns.after(asked_by(rollout, rows, store, next_turns), rollout)
        except KeyError:
            continue  # its prompt is not asked any more: the data was made again
        if found is not None:
            return found
    return None
