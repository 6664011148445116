"""Replies without a verdict are judged once over restarts, for being right alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_judge import FakeJudge, kernel

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.models.base import Message
from kernelblaster.training.datasets import TrainableReplies, preference_rows, unpaired_rows, warmup_rows
from kernelblaster.training.rejudging import VERDICTS, judge_again, with_verdicts
from kernelblaster.training.sources import KnownReply, KnownResult
from kernelblaster.training.splits import SplitEntry, Splits

SPLITS = Splits(problems={"level1/023": SplitEntry(split="train", family="softmax")})


def reply(verdict: Verdict, outcome: KnownResult | None = None, precision: str = "fp16") -> KnownReply:
    source = kernel(verdict, note=f"// {outcome}\n")
    return KnownReply(
        problem="level1/023", precision=precision,
        prompt=(Message(role="system", content="r"), Message(role="user", content="# P")),
        text=f"```cuda\n{source}```", source=source, parent_sha256="p", technique="t", model="m", device="H200",
        origin="recording:r", outcome=outcome,
    )  # fmt: skip


FASTER = KnownResult(Verdict.CORRECT, Decision.FASTER, 2.0)
REPLIES = [
    reply(Verdict.CORRECT), reply(Verdict.WRONG_VALUES), reply(Verdict.NOT_EMULATABLE), reply(Verdict.CORRECT, FASTER),
    reply(Verdict.RUNTIME_ERROR, precision="fp32"),
]  # fmt: skip


@pytest.fixture
def told(catalogue: Catalogue, judge: FakeJudge, tmp_path: Path) -> list[KnownReply]:
    for _ in range(2):
        assert judge_again(REPLIES, SharedJudge(judge), catalogue, tmp_path / VERDICTS) == 0
    return with_verdicts(REPLIES, tmp_path / VERDICTS)


def test_each_unknown_kernel_is_judged_once_and_what_says_nothing_stays_unknown(
    told: list[KnownReply], judge: FakeJudge
) -> None:
    assert judge.judged == [one.source for one in REPLIES[:3]]
    assert set(judge.tiers) == {Tier.CORRECT}
    assert [one.outcome for one in told] == [
        KnownResult(Verdict.CORRECT), KnownResult(Verdict.WRONG_VALUES), None, FASTER, None,
    ]  # fmt: skip


def test_a_kernel_that_was_not_timed_is_no_worse_than_a_faster_one(told: list[KnownReply]) -> None:
    kept = TrainableReplies(told, SPLITS)
    pairs = {(one.chosen[0].content, one.rejected[0].content) for one in preference_rows(kept)}
    right, wrong, _, faster, _ = (one.text for one in told)
    assert pairs == {(right, wrong), (faster, wrong)}
    assert {one.completion[0].content: one.label for one in unpaired_rows(kept)} == {wrong: False, faster: True}
    assert [one.stage for one in warmup_rows(kept)] == ["frontend", "frontend", "midend"]


def test_a_device_that_fails_leaves_a_kernel_for_the_next_start(
    catalogue: Catalogue, judge: FakeJudge, tmp_path: Path
) -> None:
    judge.lost = True
    assert judge_again(REPLIES, SharedJudge(judge), catalogue, tmp_path / VERDICTS) == 3
    judge.lost = False
    assert judge_again(REPLIES, SharedJudge(judge), catalogue, tmp_path / VERDICTS) == 0
    assert len(judge.judged) == 3
