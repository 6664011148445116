"""Which prompts a step asks: each once per epoch, by a curriculum, or the next turns of earlier rollouts among them.

What is asked at a step follows from the seed and from what is stored of earlier steps alone, so that a stage that
resumes asks the same, whatever its trainer's generators have drawn.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from kernelblaster.config.training import TrainConfig, TurnCredit
from kernelblaster.training.curriculum import choose
from kernelblaster.training.rollouts import RolloutStore
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.turns import Asked, NextTurns, draw_next_turn


def turns_within_a_step(config: TrainConfig) -> int:
    """Turns that a dialogue of one step may take: one where each turn is a prompt of its own."""
    return config.turns if config.turn_credit is TurnCredit.RETURNS else 1


def asked_at(
    step: int, rows: Mapping[str, PromptRow], config: TrainConfig, store: RolloutStore, next_turns: NextTurns
) -> list[Asked]:
    """What the groups of a step are asked.

    Args:
        step: updates made before it.
        rows: digest -> prompt that fits; one at least.
        config: of the training.
        store: of the stage.
        next_turns: makes the prompts of later turns.
    """
    names = list(rows)
    if config.curriculum:
        chosen = choose(names, store.rollouts, step=step, groups=config.groups, seed=config.seed)
    else:
        chosen = in_epochs(names, step=step, groups=config.groups, seed=config.seed)
    asked = [Asked(rows[name]) for name in chosen]
    if config.turns == turns_within_a_step(config):
        return asked
    rng = random.Random(f"turns/{config.seed}/{step}")
    later = [draw_next_turn(rows, store, next_turns, step=step, turns=config.turns, rng=rng) for _ in asked]
    return [first if next_one is None else next_one for first, next_one in zip(asked, later, strict=True)]


def in_epochs(names: Sequence[str], *, step: int, groups: int, seed: int) -> list[str]:
    """The names whose turn it is: each once before any comes again, in an order drawn for each epoch."""
    places = (divmod(step * groups + group, len(names)) for group in range(groups))
    return [random.Random(f"{seed}/{epoch}").sample(names, len(names))[place] for epoch, place in places]
