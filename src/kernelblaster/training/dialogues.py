"""The completions of a step, turn after turn: written, kept, judged, answered to. A single turn is a dialogue of one.

Everything is on disk before it is used: a step that is made again after a kill finds what it had written and judged,
whatever turn it was in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from kernelblaster.config.training import TrainConfig
from kernelblaster.training.judging import COMPARED_WITH, Place, PolicyCompletion, Scorer, judge_step
from kernelblaster.training.policy import prompt_ids
from kernelblaster.training.rollouts import Generation, Logprobs, Rollout, RolloutStore, digest_of_tokens
from kernelblaster.training.turns import Asked, Fits, NextTurns

OnProgress = Callable[[str, int], None]
"""Called with an event of a stage and its step, to show progress; tests end the process there."""


@dataclass(frozen=True)
class Written:
    """What a policy wrote for some prompts.

    Attributes:
        completions: tokens of each.
        logprobs: of these tokens; None where the generator does not tell them.
    """

    completions: list[list[int]]
    logprobs: list[Logprobs] | None = None


Write = Callable[[list[list[int]], int], Written]
"""Has prompts, as tokens, answered; also given the turn, 0 for the first."""


@dataclass(frozen=True)
class DialogueTurn:
    """A turn of a dialogue.

    Attributes:
        prompt, completion: as tokens.
        logprobs: of the completion, where they are known.
        rollout: what became of it.
    """

    prompt: list[int]
    completion: list[int]
    logprobs: Logprobs | None
    rollout: Rollout


def next_turns_of(scorer: Scorer, config: TrainConfig, fits: Fits) -> NextTurns:
    """What makes the prompts of later turns of a stage."""
    return NextTurns(
        scheme=scorer.scheme,
        turns=config.turns,
        characters=config.feedback_characters,
        against=COMPARED_WITH[scorer.baseline],
        evaluations=scorer.judge.recall,
        fits=fits,
    )


@dataclass(frozen=True)
class Dialogues:
    """Holds dialogues.

    Attributes:
        tokenizer: of the policy.
        ends: tokens that end a completion.
        group: dialogues on one prompt.
        turns: that one may take.
        next_turns: makes the prompts of later turns.
        scorer: judges.
        store: of the stage.
        on_progress: told of `generating`, `generated` and `judged`, in each turn.
    """

    tokenizer: Any
    ends: Collection[int]
    group: int
    turns: int
    next_turns: NextTurns
    scorer: Scorer
    store: RolloutStore
    on_progress: OnProgress = lambda name, step: None

    def hold(self, step: int, asked: Sequence[Asked], write: Write) -> list[list[DialogueTurn]]:
        """The turns of each dialogue, one at least.

        Args:
            step: updates made before it.
            asked: what each dialogue begins with; those of a group follow each other.
            write: has prompts answered that were not answered before.

        Raises MachineError where the judge fails too often.
        """
        held: list[list[DialogueTurn]] = [[] for _ in asked]
        going: dict[int, Asked] = dict(enumerate(asked))
        for turn in range(self.turns):
            if not going:
                break
            for dialogue, made in zip(going, self._turn(step, turn, going, write), strict=True):
                held[dialogue].append(made)
            if turn + 1 < self.turns:
                after = {place: self.next_turns.after(one, held[place][-1].rollout) for place, one in going.items()}
                going = {place: one for place, one in after.items() if one is not None}
        return held

    def _turn(self, step: int, turn: int, going: dict[int, Asked], write: Write) -> list[DialogueTurn]:
        prompts = [prompt_ids(self.tokenizer, one.row) for one in going.values()]
        written = self._written(step, turn, prompts, write)
        completions = [
            (self._place(dialogue, turn, one), self._completion(one, ids))
            for (dialogue, one), ids in zip(going.items(), written.completions, strict=True)
        ]
        rollouts = judge_step(step, completions, self.scorer, self.store)
        self.on_progress("judged", step)
        logprobs: Sequence[Logprobs | None] = written.logprobs or [None] * len(prompts)
        return [DialogueTurn(*one) for one in zip(prompts, written.completions, logprobs, rollouts, strict=True)]

    def _written(self, step: int, turn: int, prompts: list[list[int]], write: Write) -> Written:
        digest = digest_of_tokens(prompts)
        found = self.store.generation(step, digest, turn)
        if found is None:
            self.on_progress("generating", step)
            new = write(prompts, turn)
            found = Generation(step=step, turn=turn, prompts=digest, completions=new.completions, logprobs=new.logprobs)
            self.store.keep_generation(found)
        self.on_progress("generated", step)
        return Written(found.completions, found.logprobs)

    def _completion(self, asked: Asked, ids: list[int]) -> PolicyCompletion:
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        return PolicyCompletion.of_tokens(asked.row, text, ids, self.ends)

    def _place(self, dialogue: int, turn: int, asked: Asked) -> Place:
        """Rows lie by group, turn and dialogue of the group, so that what is compared with each other is together."""
        group, within = divmod(dialogue, self.group)
        row = group * self.turns + turn
        return Place(row * self.group + within, row, asked.turn, dialogue, asked.follows)
