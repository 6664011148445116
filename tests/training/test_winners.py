"""The fastest kernels of an evaluation count only as far as they hold when they are measured again."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_judge import FakeJudge, evaluation, kernel

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Message
from kernelblaster.training.datasets import fenced
from kernelblaster.training.judging import PolicyCompletion, Scorer, StoredJudge
from kernelblaster.training.rollouts import Rollout
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.winners import WINNERS, logarithms, measure_winners

ROW = PromptRow(
    prompt=(Message(role="user", content="?"),), problem="level1/023", stage="midend", precision="fp16", size="small",
    family="softmax", split="heldout",
)  # fmt: skip
FAST, FASTER = kernel(Verdict.CORRECT, 2.0, Decision.FASTER), kernel(Verdict.CORRECT, 3.0, Decision.FASTER)
SLOW, WRONG = kernel(Verdict.CORRECT, 9.0, Decision.INCONCLUSIVE), kernel(Verdict.WRONG_VALUES)


@pytest.fixture
def scorer(stored: Callable[[], StoredJudge]) -> Scorer:
    return Scorer(stored(), REWARDS.get("seed")(RewardOptions()))


def rollouts(scorer: Scorer, *sources: str) -> list[Rollout]:
    judged = scorer.score([PolicyCompletion(ROW, fenced(source), tokens=1) for source in sources])
    return [
        Rollout(
            **one.model_dump(), step=0, index=index, group=0, dialogue=index, problem=ROW.problem, prompt=ROW.digest,
            completion=fenced(source), tokens=1, truncated=False,
        )
        for index, (one, source) in enumerate(zip(judged, sources, strict=True))
    ]  # fmt: skip


def test_the_fastest_is_measured_in_five_pairs_of_processes_once(
    scorer: Scorer, judge: FakeJudge, tmp_path: Path
) -> None:
    sampled = rollouts(scorer, FAST, FASTER, SLOW, WRONG)
    before = len(judge.judged)
    for _ in range(2):
        (winner,) = measure_winners(sampled, [ROW], scorer, tmp_path, 5)
    assert judge.judged[before:] == [source_of(FASTER)] * 5
    assert judge.sanitized == [source_of(FASTER)]
    assert winner.again == (3.0,) * 5
    assert logarithms([winner], [ROW.problem, "level1/001"]) == [math.log(3), 0.0]


def source_of(source: str) -> str:
    """As it stands in a reply."""
    return f"{source.strip()}\n"


def test_what_is_no_gain_once_or_not_clean_counts_as_none(
    scorer: Scorer, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled, plain, calls = rollouts(scorer, FAST), judge.evaluate, []

    def failing_once(*given: Any, **more: Any) -> Any:
        calls.append(given)
        return evaluation(Verdict.CORRECT, 0.9, Decision.SLOWER) if len(calls) == 3 else plain(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(judge, "evaluate", failing_once)
        (lucky,) = measure_winners(sampled, [ROW], scorer, tmp_path / "lucky", 5)
    assert lucky.again == (2.0, 2.0, 1.0, 2.0, 2.0)
    assert lucky.gain == 1.0
    judge.findings = [SanitizerFinding(tool="racecheck", message="a race")]
    (racing,) = measure_winners(rollouts(scorer, FASTER), [ROW], scorer, tmp_path / "racing", 1)
    assert (racing.again, racing.gain) == ((3.0,), 1.0)


def test_there_is_no_winner_without_a_gain_and_none_of_another_prompt(scorer: Scorer, tmp_path: Path) -> None:
    assert measure_winners(rollouts(scorer, SLOW, WRONG), [ROW], scorer, tmp_path, 5) == []
    assert not (tmp_path / WINNERS).exists()
    (sampled,) = rollouts(scorer, FAST)
    changed = sampled.model_copy(update={"source_sha256": source_digest(WRONG)})
    with pytest.raises(UsageError, match="no longer names"):
        measure_winners([changed], [ROW], scorer, tmp_path, 5)


def test_what_waits_beyond_the_deadline_of_a_step_is_the_machines_loss(scorer: Scorer, judge: FakeJudge) -> None:
    late = Scorer(scorer.judge, scorer.scheme, deadline_s=-1.0)
    with pytest.raises(MachineError, match=r"train\.judge_minutes"):
        late.score([PolicyCompletion(ROW, fenced(FAST), tokens=1)])
    assert judge.judged == []
    (nothing,) = late.score([PolicyCompletion(ROW, "no code", tokens=1)])
    assert nothing.reward is not None
