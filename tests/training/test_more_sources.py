"""Rollouts of a training and kernels of a knowledge base become sets to learn from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_judge import kernel

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.store import seed_path
from kernelblaster.models.base import Message
from kernelblaster.problems.tags import Split
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.datasets import Asking, fenced
from kernelblaster.training.exporting import export
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rollouts import Rollout, RolloutHeader, RolloutStore
from kernelblaster.training.rows import (
    PreferenceRow,
    PromptRow,
    SftRow,
    TransitionRow,
    UnpairedRow,
    read_rows,
    write_rows,
)
from kernelblaster.training.splits import Splits, make_splits
from kernelblaster.training.stages import Stage

PARENT = kernel(Verdict.CORRECT, note="// parent\n")
FAST = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)
SAME = kernel(Verdict.CORRECT, 1.0)
WRONG = kernel(Verdict.WRONG_VALUES)
HACK = kernel(Verdict.REWARD_HACK)


@pytest.fixture(scope="module")
def splits(catalogue: Catalogue) -> Splits:
    return make_splits(catalogue.problems)


def row(stage: Stage, problem: str = "level1/023") -> PromptRow:
    parent = PARENT if stage is Stage.MIDEND else ""
    return PromptRow(
        prompt=(Message(role="user", content=f"{stage} {problem}"),), problem=problem, stage=stage, precision="fp16",
        size="small", family="softmax", split="train", parent=parent,
        parent_sha256=source_digest(parent) if parent else "",
    )  # fmt: skip


@pytest.fixture
def training(tmp_path: Path) -> TrainingLayout:
    """Both stages wrote some kernels, one of them in answer to a failure."""
    layout = TrainingLayout(tmp_path / "mine")
    for stage, written in ((Stage.FRONTEND, (WRONG, FAST)), (Stage.MIDEND, (FAST, SAME, WRONG, HACK, ""))):
        asked = row(stage)
        write_rows(layout.prompts(stage), [asked])
        layout.stage(stage).mkdir(parents=True)
        header = RolloutHeader(
            stage=stage, conditions={"device_name": "H200"}, modelled=False, reward="graded",
            baseline="parent" if stage is Stage.MIDEND else "start",
        )  # fmt: skip
        store = RolloutStore(layout.stage(stage), header)
        for index, source in enumerate(written):
            repairs = stage is Stage.FRONTEND and index == 1
            store.keep(rollout(asked, index, source, follows=(0, 0) if repairs else None))
            if source:
                write_atomically(layout.kernel(asked.problem, source_digest(source)), source)
    return layout


def rollout(asked: PromptRow, index: int, source: str, follows: tuple[int, int] | None) -> Rollout:
    verdict = source.split()[1] if source else "no_code"
    timed = verdict == Verdict.CORRECT
    return Rollout(
        step=0, index=index, group=0, problem=asked.problem, prompt="of a later turn" if follows else asked.digest,
        turn=1 if follows else 0, follows=follows, completion=f"thoughts\n{fenced(source)}", tokens=9,
        truncated=False, verdict=verdict, reward=float(index), source_sha256=source_digest(source) if source else "",
        decision="" if not timed else Decision.FASTER if source == FAST else Decision.INCONCLUSIVE,
        speedup=None if not timed else 2.0 if source == FAST else 1.0,
    )  # fmt: skip


def test_what_a_policy_wrote_itself_is_learned_from(training: TrainingLayout, splits: Splits, tmp_path: Path) -> None:
    out = tmp_path / "data"
    export([training.root], splits, out)
    sft = {one.stage: one for one in read_rows(out / "sft.jsonl", SftRow)}
    assert sft.keys() == {"frontend", "midend"}
    assert sft["frontend"].prompt == row(Stage.FRONTEND).prompt  # the first of the dialogue
    assert sft["frontend"].completion[0].content.startswith("thoughts")
    assert (sft["frontend"].reward, sft["frontend"].speedup) == (1.0, None)
    assert (sft["midend"].reward, sft["midend"].reward_scheme, sft["midend"].speedup) == (0.0, "graded", 2.0)
    pairs = [
        (one.chosen[0].content, one.rejected[0].content) for one in read_rows(out / "preferences.jsonl", PreferenceRow)
    ]
    assert pairs
    assert not any(fenced(HACK) in chosen or fenced(WRONG) in chosen for chosen, _ in pairs)
    labels = [one.label for one in read_rows(out / "unpaired.jsonl", UnpairedRow) if one.verdict == "reward_hack"]
    assert labels == [False]
    edges = read_rows(out / "transitions.jsonl", TransitionRow)
    assert {edge.parent for edge in edges} == {PARENT}
    assert {edge.verdict: edge.reward for edge in edges if edge.candidate == HACK} == {"reward_hack": -1.0}


def test_measured_and_modelled_times_share_no_set(training: TrainingLayout, splits: Splits, tmp_path: Path) -> None:
    other = TrainingLayout(tmp_path / "emulated")
    write_rows(other.prompts(Stage.MIDEND), [row(Stage.MIDEND)])
    other.stage(Stage.MIDEND).mkdir(parents=True)
    conditions = {"device_name": "NVIDIA H200 (emulated)"}
    header = RolloutHeader(stage="midend", conditions=conditions, modelled=True, reward="seed", baseline="parent")
    source = kernel(Verdict.CORRECT, 3.0, Decision.FASTER)
    RolloutStore(other.stage(Stage.MIDEND), header).keep(
        rollout(row(Stage.MIDEND), 0, source, None).model_copy(update={"speedup": 3.0, "decision": "faster"})
    )
    write_atomically(other.kernel("level1/023", source_digest(source)), source)
    with pytest.raises(UsageError, match="modelled"):
        export([training.root, other.root], splits, tmp_path / "data")
    export([other.root], splits, tmp_path / "data")


def test_kernels_of_a_knowledge_base_answer_prompts_that_are_made_for_them(
    catalogue: Catalogue, stored: Callable[[], StoredJudge], splits: Splits, tmp_path: Path
) -> None:
    (without, *_) = export([seed_path()], splits, tmp_path / "without")
    assert without.rows == 0
    prompts = PromptBuilder(stored(), splits, PromptForm.FULL)
    asking = Asking(
        lambda reply, stage: prompts.asked_again(catalogue.find(reply.problem), reply, stage), only_missing=True
    )
    (card, *_) = export([seed_path()], splits, tmp_path / "with", asking)
    rows = read_rows(tmp_path / "with" / "sft.jsonl", SftRow)
    assert card.rows == len(rows) > 0
    assert {(one.stage, one.split, one.verdict) for one in rows} == {("frontend", Split.TRAIN, "correct")}
    assert all(f"Problem {one.problem}" in one.prompt[1].content for one in rows)
