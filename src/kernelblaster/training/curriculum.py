"""Which prompts a step asks: those whose groups teach something more often, none of them never.

A group whose rewards are all equal has no gradient. A prompt is drawn in proportion to the share of its last groups
whose rewards differed; one that was not asked yet counts as if all had. What is drawn at a step follows from the seed
and from the rollouts of earlier steps alone, which are on disk, so that a stage that resumes asks the same.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

from kernelblaster.training.metrics import is_informative
from kernelblaster.training.rollouts import Rollout

LATEST = 8
"""Groups of a prompt that count: the policy that was asked before them was another."""
LEAST = 0.1
"""Weight that every prompt keeps, so that one that became solvable is found."""


def weights_of(prompts: Sequence[str], rollouts: Iterable[Rollout]) -> list[float]:
    """Weight of each prompt, `LEAST` to 1: (groups that differed + 1) / (groups + 1) of its last groups.

    Args:
        prompts: their digests.
        rollouts: of earlier steps, whatever they are of.
    """
    groups: defaultdict[str, defaultdict[tuple[int, int], list[Rollout]]] = defaultdict(lambda: defaultdict(list))
    for one in rollouts:
        groups[one.prompt][one.step, one.group].append(one)
    found = []
    for prompt in prompts:
        latest = [group for _, group in sorted(groups[prompt].items())][-LATEST:]
        found.append(max(LEAST, (sum(map(is_informative, latest)) + 1) / (len(latest) + 1)))
    return found


def choose(prompts: Sequence[str], rollouts: Iterable[Rollout], *, step: int, groups: int, seed: int) -> list[str]:
    """The prompts of a step's groups, by digest; one may be drawn twice. Raises IndexError without prompts.

    Args:
        prompts: digests of all that fit.
        rollouts: of the stage; those of this step and later ones do not count.
        step: updates made before it.
        groups: of the step.
        seed: of the training.
    """
    weights = weights_of(prompts, (one for one in rollouts if one.step < step))
    # A generator of its own: TRL's must be in the same state whether or not a step found what it had generated.
    return random.Random(f"{seed}/{step}").choices(prompts, weights, k=groups)
