"""Figures of episodes, and the file that they come from."""

from __future__ import annotations

import statistics
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.api.model_evaluation import kept_scores
from kernelblaster.environment.samples import EvalHeader, SampleStore, Turn
from kernelblaster.environment.scores import Episode, best_at, pass_at, scores_by_level, scores_of
from kernelblaster.environment.submission import Language
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Usage

HEADER = EvalHeader(
    model="m", dataset="d", turns=3, language=Language.AUTO, conditions={"device": "cuda"}, modelled=False, reward={}
)  # fmt: skip


def turn(verdict: Verdict, reward: float, speedup: float | None = None, **values: object) -> Turn:
    known = {
        "problem": "p", "sample": 1, "turn": 1, "reply": "", "finish_reason": None, "language": "cuda", "reason": "",
        "usage": Usage(prompt_tokens=1, completion_tokens=1, dollars=None), "verdict": verdict, "reward": reward,
        "decision": None if speedup is None else Decision.FASTER if speedup > 1 else Decision.SLOWER,
        "speedup": speedup, "reward_parts": {}, "hack": verdict is Verdict.REWARD_HACK, "suspicious": False,
        "device_limit": False, "feedback": "", "done": True,
    }  # fmt: skip
    return Turn.model_validate(known | values)


RIGHT, FAST = turn(Verdict.CORRECT, 0.4, 0.9), turn(Verdict.CORRECT, 0.875, 1.5)
WRONG, HACK = turn(Verdict.WRONG_VALUES, 0.1), turn(Verdict.REWARD_HACK, 0.0)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=7), st.integers(1, 7))
def test_best_at_k_is_the_mean_best_of_all_choices_of_k_samples(values: list[float], k: int) -> None:
    if k > len(values):
        with pytest.raises(ValueError, match="samples"):
            best_at(k, values)
        return
    assert best_at(k, values) == pytest.approx(statistics.fmean(map(max, combinations(values, k))), abs=1e-9)


@given(data=st.data())
def test_pass_at_k_is_the_share_of_choices_of_k_samples_with_a_passing_one(data: st.DataObject) -> None:
    samples = data.draw(st.integers(1, 8))
    passed, k = data.draw(st.integers(0, samples)), data.draw(st.integers(1, samples))
    chosen = list(combinations(range(samples), k))
    assert pass_at(k, samples, passed) == pytest.approx(sum(min(one) < passed for one in chosen) / len(chosen))


def test_an_episode_counts_by_its_best_turn_and_fails_by_a_hack() -> None:
    improved, hacked = Episode([WRONG, RIGHT, FAST]), Episode([FAST, HACK])
    assert (improved.correct, improved.reward, improved.speedup) == (True, 0.875, 1.5)
    assert (hacked.correct, hacked.reward, hacked.speedup) == (False, 0.0, 1.0)


def test_failures_are_in_every_denominator_and_levels_stand_apart() -> None:
    episodes = {
        "easy": [Episode([FAST]), Episode([RIGHT])],
        "hard": [Episode([WRONG]), Episode([FAST, HACK])],
        "waits": [],
    }
    found = scores_of(episodes)
    assert (found.problems, found.episodes) == (2, 4)
    assert found.pass_at == {1: 0.5, 2: 0.5}
    assert found.fast == {"1": 0.25, "1.2": 0.25, "1.5": 0.0, "2": 0.0}
    assert found.hack_rate == 0.25
    assert found.reward == pytest.approx((0.6375 + 0.05) / 2)
    assert found.pass_at_1_error == pytest.approx(0.5)
    levels = scores_by_level(episodes, {"easy": 1, "hard": 3, "waits": 3})
    assert {level: one.pass_at[1] for level, one in levels.items()} == {1: 1.0, 3: 0.0}


def test_nothing_is_scored_from_nothing() -> None:
    found = scores_of({"waits": []})
    assert (found.episodes, found.pass_at, found.fast, found.reward, found.hack_rate) == (0, {}, {}, None, None)


def test_turns_survive_a_kill_in_the_middle_of_a_line(tmp_path: Path) -> None:
    first = turn(Verdict.WRONG_VALUES, 0.1, done=False)
    store = SampleStore(tmp_path, HEADER)
    store.keep(first)
    store.keep(first.model_copy(update={"reply": "again"}))
    with store.path.open("ab") as file:
        file.write(b'{"problem": "p", "sam')
    again = SampleStore(tmp_path, HEADER)
    assert again.turns("p", 1) == (first,)
    again.keep(first.model_copy(update={"turn": 2}))
    assert len(SampleStore(tmp_path, HEADER).turns("p", 1)) == 2


def test_figures_of_two_machines_never_mix(tmp_path: Path) -> None:
    SampleStore(tmp_path, HEADER)
    with pytest.raises(UsageError, match="conditions"):
        SampleStore(tmp_path, HEADER.model_copy(update={"conditions": {"device": "emulated"}}))


def test_kept_turns_count_as_if_episodes_had_been_shorter(tmp_path: Path) -> None:
    store = SampleStore(tmp_path, HEADER)
    name = "L2_17_Conv2d_InstanceNorm_Divide"
    going_on = WRONG.model_copy(update={"done": False, "problem": name})
    for played in (
        going_on,
        FAST.model_copy(update={"problem": name, "turn": 2}),
        going_on.model_copy(update={"sample": 2}),
    ):
        store.keep(played)
    whole, first = kept_scores(tmp_path), kept_scores(store.path, turns=1)
    assert (whole.begun, whole.overall.episodes, whole.overall.pass_at) == (2, 1, {1: 1.0})
    assert (first.overall.episodes, first.overall.pass_at[1], first.overall.reward) == (2, 0.0, 0.1)
    assert list(whole.levels) == [2]
    assert kept_scores(tmp_path, turns=9).turns == HEADER.turns


@pytest.mark.parametrize("content", [None, "", "{}\n", '{"format": "other"}\n'])
def test_what_is_no_evaluation_is_refused_by_name_and_left_as_it_is(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "turns.jsonl"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=r"turns\.jsonl") as refused:
        kept_scores(tmp_path)
    assert refused.value.hint
    assert (file.read_text() if file.exists() else None) == content
