"""Every completion gets the reward of its evaluation, once; the machine's failures are never a reward."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from fake_judge import FakeJudge, evaluation, kernel
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.config.training import Baseline, Preset, TrainConfig
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.rewards import REWARDS, RewardOptions, rewarded
from kernelblaster.errors import MachineError
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.models.base import Message
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.judging import MACHINE, PolicyCompletion, Scorer, StoredJudge
from kernelblaster.training.metrics import metrics_of
from kernelblaster.training.rollouts import Rollout
from kernelblaster.training.rows import PromptRow, ReplyForm
from kernelblaster.training.stages import Stage, plan_of

ROW = PromptRow(
    prompt=(Message(role="user", content="?"),), problem="level1/023", stage="frontend", precision="fp16", size="small",
    family="softmax", split="train",
)  # fmt: skip
FAILURES = [verdict for verdict in Verdict if verdict not in (Verdict.CORRECT, Verdict.REWARD_HACK)]
SCHEMES = sorted({plan_of(TrainConfig(preset=preset), stage).reward for preset in Preset for stage in Stage})


def scorer(judge: StoredJudge, scheme: str, baseline: Baseline = Baseline.START) -> Scorer:
    return Scorer(judge, REWARDS.get(scheme)(RewardOptions()), baseline)


def reply(source: str) -> PolicyCompletion:
    return PolicyCompletion(ROW, f"Here it is.\n```cuda\n{source}```\n", tokens=1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_planted_cheats_get_the_floor_and_no_failure_less(stored: Callable[[], StoredJudge], scheme: str) -> None:
    score = scorer(stored(), scheme).score
    (cheat,) = score([reply(kernel(Verdict.REWARD_HACK, 100.0, Decision.FASTER))])
    honest = [one.reward for verdict in FAILURES for one in score([reply(kernel(verdict))])]
    nothing = score([PolicyCompletion(ROW, "I cannot.", tokens=1)])[0].reward
    assert cheat.hack
    assert cheat.reward == REWARDS.get(scheme)(RewardOptions()).lowest
    known = [one for one in [*honest, nothing] if one is not None]
    assert len(known) >= len(honest), "one verdict alone is the device's: what it cannot emulate has no reward"
    assert all(cheat.reward <= one for one in known)


@pytest.mark.parametrize(
    ("preset", "stage", "wrong", "right"),
    [
        (Preset.SEED, Stage.FRONTEND, -10.0, 1.0), (Preset.SEED, Stage.MIDEND, -10.0, 3.0),
        (Preset.OURS, Stage.FRONTEND, 0.2, 1.0), (Preset.OURS, Stage.MIDEND, 0.1, 1.0),
    ],
)  # fmt: skip
def test_rewards_of_the_presets(
    stored: Callable[[], StoredJudge], preset: Preset, stage: Stage, wrong: float, right: float
) -> None:
    score = scorer(stored(), plan_of(TrainConfig(preset=preset), stage).reward).score
    found = score([reply(kernel(Verdict.WRONG_VALUES)), reply(kernel(Verdict.CORRECT, 2.0, Decision.FASTER))])
    assert [one.reward for one in found] == pytest.approx([wrong, right])


@given(
    verdict=st.sampled_from(Verdict),
    decision=st.sampled_from(Decision),
    speedup=st.floats(min_value=1e-3, max_value=1e6),
)
def test_our_rewards_are_bounded_whatever_is_judged(verdict: Verdict, decision: Decision, speedup: float) -> None:
    for stage in Stage:
        scheme = REWARDS.get(plan_of(TrainConfig(), stage).reward)(RewardOptions())
        assert 0.0 <= rewarded(scheme, evaluation(verdict, speedup, decision)).value <= 1.5


def test_more_input_sets_are_worth_more_and_none_of_them_as_much_as_being_correct() -> None:
    scheme = REWARDS.get("graded")(RewardOptions())
    values = []
    for passed in range(5):
        found = evaluation(Verdict.WRONG_VALUES)
        one = found.errors[0]
        figures = [one.model_copy(update={"seed": seed, "passed": seed < passed}) for seed in range(5)]
        found = found.model_copy(update={"errors": figures, "input_sets": 12})
        values.append(math.fsum(scheme.parts(found).values()))
    assert values == sorted(set(values))
    assert values[0] == pytest.approx(0.2)
    assert values[-1] < 1.0


def test_a_kernel_is_judged_once_over_restarts(stored: Callable[[], StoredJudge], judge: FakeJudge) -> None:
    first = scorer(stored(), "seed").score([reply(kernel(Verdict.CORRECT, 2.0, Decision.FASTER))] * 3)
    asked = len(judge.judged)
    again = scorer(stored(), "seed").score([reply(kernel(Verdict.CORRECT, 2.0, Decision.FASTER))])
    assert len({one.evaluation for one in (*first, *again)}) == 1
    assert len(judge.judged) == asked == 2  # the start, and the kernel


@pytest.mark.parametrize(("second", "counts"), [(2.0, 2.0), (30.0, 30.0), (80.0, 50.0)])
def test_a_gain_that_is_hardly_to_be_believed_is_measured_again_and_the_worse_outcome_counts(
    stored: Callable[[], StoredJudge], judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, second: float, counts: float
) -> None:
    fast = kernel(Verdict.CORRECT, 50.0, Decision.FASTER)
    plain = judge.evaluate

    def changing(problem: object, source: str, **options: object) -> Evaluation:
        again = source == fast and fast in judge.judged
        return plain(problem, kernel(Verdict.CORRECT, second, Decision.FASTER) if again else source, **options)

    monkeypatch.setattr(judge, "evaluate", changing)
    found = [scorer(stored(), "seed").score([reply(fast)])[0] for _ in range(2)]
    assert [one.speedup for one in found] == [counts, counts]
    assert found[0].suspicious == (counts > 10)
    assert found[0].source_sha256 == source_digest(fast)
    assert len(judge.judged) == 3  # the start, and the kernel twice: none again after a restart


def test_what_the_machine_fails_to_judge_has_no_reward_and_too_much_of_it_stops(
    stored: Callable[[], StoredJudge], judge: FakeJudge
) -> None:
    good = reply(kernel(Verdict.CORRECT))
    scoring = scorer(stored(), "seed")
    scoring.score([good])
    judge.lost = True
    found = scoring.score([good] * 9 + [reply(kernel(Verdict.CORRECT, note="// other\n"))])
    assert [one.reward is None for one in found] == [False] * 9 + [True]
    assert found[-1].verdict == MACHINE
    with pytest.raises(MachineError):
        scoring.score([reply(kernel(Verdict.CORRECT, note=f"// {n}\n")) for n in range(3)])


def test_speedups_are_against_the_kernel_of_the_prompt_where_that_is_asked_for(
    stored: Callable[[], StoredJudge], judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    against: list[str | None] = []
    plain = judge.evaluate

    def noting(problem: object, source: str, *, baseline: str | None, **options: object) -> Evaluation:
        against.append(baseline)
        return plain(problem, source, baseline=baseline, **options)

    monkeypatch.setattr(judge, "evaluate", noting)
    parent = kernel(Verdict.CORRECT, note="// parent\n")
    row = ROW.model_copy(update={"parent": parent})
    completion = PolicyCompletion(row, reply(kernel(Verdict.CORRECT, 2.0, Decision.FASTER)).text, tokens=1)
    scorer(stored(), "seed", Baseline.PARENT).score([completion])
    assert against == [parent]


def test_a_choice_names_a_source_and_anything_else_is_no_code(stored: Callable[[], StoredJudge]) -> None:
    choices = {"a": kernel(Verdict.CORRECT), "b": kernel(Verdict.COMPILE_ERROR)}
    row = ROW.model_copy(update={"reply": ReplyForm.CHOICE, "choices": json.dumps(choices)})
    found = scorer(stored(), "graded").score([PolicyCompletion(row, text, tokens=1) for text in ("a", " b\n", "c", "")])
    assert [one.verdict for one in found] == ["correct", "compile_error", "no_code", "no_code"]


def test_a_reply_in_triton_is_a_whole_module_in_a_fence(
    stored: Callable[[], StoredJudge], judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.environment.submission.has_triton", lambda: True)
    row = ROW.model_copy(update={"language": CandidateLanguage.TRITON})
    module = "import triton\n\nclass ModelNew:\n    pass\n"
    fenced = f"```python\n{module}```"
    replies = [fenced, module, fenced[:-3], reply(kernel(Verdict.CORRECT)).text]
    found = scorer(stored(), "graded").score([PolicyCompletion(row, text, 9) for text in replies])
    assert [one.verdict for one in found] == ["correct", "no_code", "no_code", "no_code"]
    assert judge.judged[-1] == module


def test_a_reply_that_is_cut_off_is_no_code(stored: Callable[[], StoredJudge]) -> None:
    cut = reply(kernel(Verdict.CORRECT)).text[:-8]
    assert (
        scorer(stored(), "graded").score([PolicyCompletion(ROW, cut, tokens=1, truncated=True)])[0].verdict == "no_code"
    )


def rollout(index: int, verdict: str, **known: object) -> Rollout:
    values: dict[str, object] = {
        "step": 0, "index": index, "group": index // 2, "problem": "level1/023", "prompt": "p", "completion": "",
        "tokens": 4, "truncated": False, "verdict": verdict, "reward": 0.0,
    }  # fmt: skip
    return Rollout.model_validate(values | known)


def test_figures_have_every_completion_in_the_denominator() -> None:
    fast = {"decision": "faster", "speedup": 4.0, "reward": 1.0}
    figures = metrics_of(
        [
            rollout(0, "correct", **fast), rollout(1, "no_code"), rollout(2, "reward_hack", hack=True),
            rollout(3, "compile_error"), rollout(4, MACHINE, reward=None),
        ]
    )  # fmt: skip
    assert (figures.completions, figures.machine_failures) == (4, 1)
    assert (figures.valid_rate, figures.build_rate, figures.correct_rate) == (0.75, 0.5, 0.25)
    assert figures.fast == {"0": 0.25, "1": 0.25, "1.2": 0.25, "1.5": 0.25, "2": 0.25}
    assert figures.geomean == pytest.approx(math.sqrt(2))
    assert figures.geomean_correct == pytest.approx(4.0)
    assert (figures.hack_rate, figures.informative_groups) == (0.25, 0.5)
    assert (figures.tokens_per_correct, figures.tokens_per_faster) == (16.0, 16.0)
    assert metrics_of([rollout(0, "no_code")]).tokens_per_correct is None
