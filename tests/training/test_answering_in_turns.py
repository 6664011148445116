"""Several turns: what a turn is worth, what the next prompt holds, and that kills change nothing in any of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from fake_judge import FakeJudge, kernel
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Message
from kernelblaster.training.judging import Place, PolicyCompletion, Scorer, StoredJudge, judge_step
from kernelblaster.training.metrics import best_of_dialogues, metrics_of
from kernelblaster.training.rollouts import Rollout, RolloutHeader, RolloutStore
from kernelblaster.training.rows import PromptRow, ReplyForm
from kernelblaster.training.turns import Asked, NextTurns, discounted_returns

ROW = PromptRow(
    prompt=(Message(role="user", content="softmax?"),), problem="level1/023", stage="frontend", precision="fp16",
    size="small", family="softmax", split="train",
)  # fmt: skip
BOUNDED = st.floats(min_value=0.0, max_value=1.0)


@given(rewards=st.lists(st.floats(-10, 10), min_size=1, max_size=5), gamma=st.floats(0, 1), more=st.integers(0, 3))
def test_a_return_is_the_discounted_sum_with_the_last_reward_kept(
    rewards: list[float], gamma: float, more: int
) -> None:
    turns = len(rewards) + more
    whole = rewards + [rewards[-1]] * more
    expected = [math.fsum(gamma ** (i - t) * whole[i] for i in range(t, turns)) for t in range(len(rewards))]
    assert discounted_returns(rewards, turns, gamma) == pytest.approx(expected)


@given(
    failures=st.lists(BOUNDED.filter(lambda one: one < 1.0), max_size=3),
    others=st.lists(BOUNDED, min_size=4, max_size=4),
)
def test_none_gains_by_being_correct_later(failures: list[float], others: list[float]) -> None:
    """A dialogue that has all there is at a turn is worth at least what any other is worth from that turn on."""
    solved = discounted_returns([*failures, 1.0], 4, 0.4)[len(failures)]
    other = discounted_returns(others, 4, 0.4)[len(failures)]
    assert solved is not None
    assert other is not None
    assert solved >= other - 1e-12


@given(honest=st.lists(st.sampled_from([-10.0, 1.0]), min_size=3, max_size=3))
def test_a_cheat_that_ends_a_dialogue_is_worth_no_more_than_failing_in_every_turn(honest: list[float]) -> None:
    cheat, failing = (discounted_returns(one, 3, 0.4)[0] for one in ([-10.0], honest))
    assert cheat is not None
    assert failing is not None
    assert cheat <= failing


def test_what_the_machine_failed_to_judge_leaves_no_return_before_it() -> None:
    assert discounted_returns([0.2, None], 3, 0.4) == [None, None]


@pytest.fixture
def scorer(stored: Callable[[], StoredJudge]) -> Scorer:
    return Scorer(stored(), REWARDS.get("graded")(RewardOptions()))


def next_turns(scorer: Scorer, *, most: int = 100_000, turns: int = 4) -> NextTurns:
    def fits(row: PromptRow) -> bool:
        return sum(len(message.content) for message in row.prompt) <= most

    return NextTurns(scorer.scheme, turns, 3000, "the start", scorer.judge.recall, fits)


def judged(scorer: Scorer, text: str, row: PromptRow = ROW, step: int = 0) -> Rollout:
    completion = PolicyCompletion(row, text, tokens=1)
    (outcome,) = scorer.score([completion])
    return Rollout(
        **outcome.model_dump(), step=step, index=0, group=0, problem=row.problem, prompt=row.digest, completion=text,
        tokens=1, truncated=False,
    )  # fmt: skip


WRONG, RIGHT, CHEAT = (kernel(one) for one in (Verdict.WRONG_VALUES, Verdict.CORRECT, Verdict.REWARD_HACK))


def test_the_next_prompt_holds_the_kernel_and_what_the_judge_found_and_no_thoughts(scorer: Scorer) -> None:
    reply = f"Let me think of a secret plan.\n```cuda\n{WRONG}```\n"
    found = next_turns(scorer).after(Asked(ROW), judged(scorer, reply))
    assert found is not None
    first, answer, said = found.row.prompt
    assert first == ROW.prompt[0]
    assert answer.role == "assistant"
    assert WRONG.strip() in answer.content
    assert "secret plan" not in answer.content
    assert said.role == "user"
    assert "expected 1, got 2" in said.content
    assert (found.turn, found.follows) == (1, (0, 0))


def test_a_reply_without_a_kernel_is_answered_with_the_reason(scorer: Scorer) -> None:
    found = next_turns(scorer).after(Asked(ROW), judged(scorer, "I cannot."))
    assert found is not None
    assert found.row.prompt[1].content == "(no kernel)"
    assert "block" in found.row.prompt[2].content


def test_a_dialogue_is_over_when_nothing_can_be_gained_or_turns_are_up(scorer: Scorer) -> None:
    def after(source: str, asked: Asked, turns: int = 4) -> Asked | None:
        return next_turns(scorer, turns=turns).after(asked, judged(scorer, f"```cuda\n{source}```\n"))

    assert after(RIGHT, Asked(ROW)) is None
    assert after(CHEAT, Asked(ROW)) is None
    assert after(WRONG, Asked(ROW, turn=3)) is None
    assert after(WRONG, Asked(ROW, turn=2)) is not None


def test_the_oldest_exchanges_go_where_room_is_short_and_the_first_prompt_stays(scorer: Scorer) -> None:
    rollout = judged(scorer, f"```cuda\n{WRONG}```\n")
    roomy = next_turns(scorer)
    second = roomy.after(Asked(ROW), rollout)
    assert second is not None
    third = roomy.after(second, rollout)
    assert third is not None
    assert len(third.row.prompt) == 5
    size = sum(len(message.content) for message in third.row.prompt)
    tight = next_turns(scorer, most=size - 1).after(second, rollout)
    assert tight is not None
    assert len(tight.row.prompt) == 3
    assert tight.row.prompt[0] == ROW.prompt[0]
    assert tight.turn == 2
    assert next_turns(scorer, most=40).after(second, rollout) is None


def test_a_dialogue_counts_by_its_best_turn_and_completions_by_themselves(
    scorer: Scorer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    header = RolloutHeader(stage="s", conditions={}, modelled=False, reward="graded", baseline="start", turns=2)
    store = RolloutStore(tmp_path_factory.mktemp("store"), header)
    row = ROW.model_copy(update={"reply": ReplyForm.CHOICE, "choices": json.dumps({"a": WRONG, "b": RIGHT})})
    later = row.model_copy(update={"prompt": (Message(role="user", content="again"),)})
    first = [(Place(0, 0, 0, 0), PolicyCompletion(row, "a", 1)), (Place(1, 0, 0, 1), PolicyCompletion(row, "a", 1))]
    second = [
        (Place(2, 1, 1, 0, (0, 0)), PolicyCompletion(later, "b", 1)),
        (Place(3, 1, 1, 1, (0, 1)), PolicyCompletion(later, "a", 1)),
    ]
    rollouts = [one for turn in (first, second) for one in judge_step(0, turn, scorer, store)]
    figures = metrics_of(rollouts)
    assert (figures.completions, figures.dialogues) == (4, 2)
    assert (figures.correct_rate, figures.solved_rate) == (0.25, 0.5)
    assert {one.prompt for one in best_of_dialogues(rollouts)} == {row.digest}
    assert figures.informative_groups == 0.5
    cheated = [one.model_copy(update={"hack": one.index == 3}) for one in rollouts]
    assert [one.hack for one in best_of_dialogues(cheated)] == [False, True]


def test_feedback_names_what_a_speedup_is_against(scorer: Scorer, judge: FakeJudge) -> None:
    slow = kernel(Verdict.CORRECT, 1.2, Decision.FASTER)
    midend = Scorer(scorer.judge, REWARDS.get("seed")(RewardOptions()))
    rollout = judged(midend, f"```cuda\n{slow}```\n")
    turns = NextTurns(midend.scheme, 2, 3000, "the kernel of the first prompt", midend.judge.recall, lambda row: True)
    found = turns.after(Asked(ROW), rollout)
    assert found is not None
    assert "Against the kernel of the first prompt: 1.200x" in found.row.prompt[-1].content
