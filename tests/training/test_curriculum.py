"""Prompts whose groups differ are asked more often; what is asked depends on what is on disk alone."""

from __future__ import annotations

from collections import Counter

from kernelblaster.training.curriculum import LATEST, LEAST, choose, weights_of
from kernelblaster.training.judging import MACHINE
from kernelblaster.training.rollouts import Rollout


def group(prompt: str, step: int, *rewards: float | None) -> list[Rollout]:
    return [
        Rollout(
            step=step, index=index, group=0, problem="level1/023", prompt=prompt, completion="", tokens=1,
            truncated=False, verdict=MACHINE if reward is None else "correct", reward=reward,
        )
        for index, reward in enumerate(rewards)
    ]  # fmt: skip


FLAT = [one for step in range(20) for one in group("flat", step, 0.2, 0.2)]
DIFFERING = [one for step in range(20) for one in group("differing", step, 0.2, 1.0)]


def test_prompts_whose_groups_differ_are_asked_more_often_and_none_never() -> None:
    prompts = ["flat", "differing", "new"]
    assert weights_of(prompts, [*FLAT, *DIFFERING]) == [max(LEAST, 1 / (LATEST + 1)), 1.0, 1.0]
    asked = Counter(
        prompt
        for step in range(20, 420)
        for prompt in choose(prompts, [*FLAT, *DIFFERING], step=step, groups=2, seed=0)
    )
    assert 0 < asked["flat"] < asked["differing"] / 4


def test_what_the_policy_did_long_ago_does_not_count() -> None:
    late = [one for step in range(20, 20 + LATEST) for one in group("flat", step, 0.2, 1.0)]
    assert weights_of(["flat"], [*FLAT, *late]) == [1.0]


def test_what_the_machine_failed_to_judge_makes_no_group_differ() -> None:
    assert weights_of(["p"], group("p", 0, 0.2, None)) == [0.5]


def test_a_step_asks_the_same_whatever_was_judged_of_it_and_after_it() -> None:
    prompts = ["flat", "differing"]
    for step in range(20):
        before = [one for one in [*FLAT, *DIFFERING] if one.step < step]
        assert choose(prompts, before, step=step, groups=3, seed=1) == choose(
            prompts, [*FLAT, *DIFFERING], step=step, groups=3, seed=1
        )
