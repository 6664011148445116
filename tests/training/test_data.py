"""What recordings hold becomes data sets that keep the splits, with cards that count them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_judge import LAUNCHER

from kernelblaster.api.training_data import export_training_data, make_training_data
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message, Purpose, Usage
from kernelblaster.models.digests import messages_digest
from kernelblaster.models.recorded import RecordedExchange, RecordingHeader
from kernelblaster.problems.problem import Problem, ProblemId
from kernelblaster.problems.tags import Split, Tag
from kernelblaster.storage.jsonl import append_line
from kernelblaster.training.datasets import Asking, fenced
from kernelblaster.training.exporting import export
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rows import PreferenceRow, SftRow, TransitionRow, UnpairedRow, read_rows
from kernelblaster.training.sources import KnownReply
from kernelblaster.training.splits import LEFT_OUT, Splits, make_splits, shingles_of, similarity
from kernelblaster.training.stages import Stage


@pytest.fixture(scope="module")
def splits(catalogue: Catalogue) -> Splits:
    return make_splits(catalogue.problems)


def exchange(problem: str, source: str, parent: str, technique: str, failed: str = "") -> RecordedExchange:
    messages = (
        Message(role="system", content="rules"),
        Message(role="user", content=f"# Problem {problem}\nthe task\n\n# Kernel to improve\n```cuda\n{parent}\n```"),
    )
    tags = {"problem": problem, "precision": "fp16", "parent_sha256": source_digest(parent), "technique": technique}
    if failed:
        tags |= {"failed_sha256": source_digest(failed), "failure": "wrong_values"}
    return RecordedExchange(
        slot=f"{problem}/{technique}", purpose=Purpose.REPAIR if failed else Purpose.GENERATE, tags=tags,
        digest=messages_digest(messages), messages=messages, model="m",
        reply=f"EXPECTED_SPEEDUP: 2\n```cuda\n{source}```",
        usage=Usage(prompt_tokens=1, completion_tokens=1, dollars=None),
    )  # fmt: skip


def kernel(name: str) -> str:
    return f"// {name}\n{LAUNCHER}\n"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """On a problem to learn from: b is accepted and c unknown; d fails and is repaired. One on a held-out problem."""
    path = tmp_path / "searched.jsonl"
    header = RecordingHeader(made_by="test", device="H200", model="m", how="scripted", started="now")
    append_line(path, header.model_dump_json().encode())
    for one in (
        exchange("level1/023", kernel("b"), kernel("a"), "tiling"),
        exchange("level1/023", kernel("d"), kernel("a"), "split"),
        exchange("level1/023", kernel("e"), kernel("a"), "split", failed=kernel("d")),
        exchange("level1/023", kernel("c"), kernel("b"), "unroll"),
        exchange("level1/095", kernel("x"), kernel("a"), "tiling"),
        exchange("level1/095", kernel("y"), kernel("x"), "tiling"),
    ):
        append_line(path, one.model_dump_json().encode())
    return path


def test_a_recording_tells_what_was_accepted_and_what_failed(recording: Path, splits: Splits, tmp_path: Path) -> None:
    out = tmp_path / "data"
    cards = {card.name: card for card in export([recording], splits, out)}
    sft = read_rows(out / "sft.jsonl", SftRow)
    assert {(row.stage, row.candidate_sha256) for row in sft} == {
        ("frontend", source_digest(kernel("b"))),
        ("midend", source_digest(kernel("b"))),
    }
    first = next(row for row in sft if row.stage == "frontend")
    assert kernel("a").strip() not in first.prompt[1].content
    assert "the task" in first.prompt[1].content
    (pair,) = read_rows(out / "preferences.jsonl", PreferenceRow)
    assert kernel("b") in pair.chosen[0].content
    assert kernel("d") in pair.rejected[0].content
    assert pair.chosen_reward > pair.rejected_reward
    assert {row.label: row.verdict for row in read_rows(out / "unpaired.jsonl", UnpairedRow)} == {
        True: "correct",
        False: "wrong_values",
    }
    edges = {row.verdict: row for row in read_rows(out / "transitions.jsonl", TransitionRow)}
    assert edges["correct"].candidate == kernel("b")
    assert cards["sft.jsonl"].rows == 2
    assert cards["sft.jsonl"].left_out == {"problem is heldout": 2, "never judged": 2}


def test_a_reply_that_was_shown_a_held_out_kernel_is_left_out(recording: Path, splits: Splits, tmp_path: Path) -> None:
    for shown, name in (("level1/095", "loss"), ("level1/026", "activation")):  # the first is held out
        plain = exchange("level1/019", kernel(name), kernel("a"), "tiling", failed=kernel("f"))
        told = f"{plain.messages[1].content}\n# A fast kernel of another problem\n{shown}: 4 us\n"
        messages = (plain.messages[0], Message(role="user", content=told))
        update = {"messages": messages, "digest": messages_digest(messages), "slot": shown}
        append_line(recording, plain.model_copy(update=update).model_dump_json().encode())
        later = exchange("level1/019", kernel("later"), kernel(name), "unroll")
        append_line(recording, later.model_copy(update={"slot": f"later {shown}"}).model_dump_json().encode())
    (sft, *_) = export([recording], splits, tmp_path / "data")
    assert sft.left_out["prompt shows a kernel of a problem outside train"] == 1
    learned = {row.candidate_sha256 for row in read_rows(tmp_path / "data" / "sft.jsonl", SftRow)}
    assert source_digest(kernel("activation")) in learned
    assert source_digest(kernel("loss")) not in learned


@pytest.mark.slow
def test_nothing_held_out_is_in_what_is_shipped(splits: Splits, tmp_path: Path) -> None:
    from kernelblaster.api.training_data import shipped_recordings

    export(shipped_recordings()[:1], splits, tmp_path)
    names = ("sft", "preferences", "unpaired", "transitions")
    learned = [json.loads(line)["problem"] for name in names for line in (tmp_path / f"{name}.jsonl").open()]
    assert len(learned) > 20
    assert {splits.problems[problem].split for problem in learned} == {Split.TRAIN}
    assert splits.problems["level1/095"].split == Split.HELD_OUT


def test_what_is_no_source_of_replies_is_a_usage_error(splits: Splits, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        export([tmp_path], splits, tmp_path / "data")


REFERENCE = """
class Model(nn.Module):
    def forward(self, x):
        y = torch.softmax(x * {scale}, dim=1)
        return torch.relu(y + x).sum(dim=1)
"""


def test_a_file_in_the_place_of_the_directory_is_a_usage_error(recording: Path) -> None:
    with pytest.raises(UsageError, match="is a file"):
        export_training_data(recording)
    with pytest.raises(UsageError, match="is a file"):
        make_training_data(recording)


def test_names_and_numbers_do_not_tell_references_apart_and_operations_do() -> None:
    one = shingles_of(REFERENCE.format(scale=2.0))
    renamed = re.sub(r"\by\b", "hidden", re.sub(r"\bx\b", "given", REFERENCE.format(scale=3.5)))
    assert similarity(one, shingles_of(renamed)) == 1.0
    assert similarity(one, shingles_of(REFERENCE.format(scale=2.0).replace("softmax", "cumsum"))) < 0.9


def test_a_training_problem_that_is_all_but_a_held_out_one_is_left_out(tmp_path: Path) -> None:
    problems = []
    for number, tag in enumerate((Tag.SOFTMAX, Tag.SCAN), start=1):
        directory = tmp_path / str(number)
        directory.mkdir()
        (directory / "reference.py").write_text(REFERENCE.format(scale=number))
        problems.append(Problem(ProblemId(1, number), f"P{number}", directory, {"small": {}}, tags=(tag,)))
    entries = make_splits(problems).problems
    assert (entries["level1/001"].split, entries["level1/001"].like) == (LEFT_OUT, "level1/002")
    assert entries["level1/002"].split == "heldout"


def test_the_shipped_splits_hold_both_parts(splits: Splits) -> None:
    parts = [entry.split for entry in splits.problems.values()]
    assert parts.count("train") > 100
    assert parts.count("heldout") > 50
    assert set(parts) <= {"train", "heldout", LEFT_OUT}


def test_in_short_a_kernel_answers_the_prompt_that_the_stages_ask(
    catalogue: Catalogue, stored: Callable[[], StoredJudge], recording: Path, splits: Splits, tmp_path: Path
) -> None:
    prompts = PromptBuilder(stored(), splits, PromptForm.SHORT)
    softmax = catalogue.find("L1_23")
    export([recording], splits, tmp_path / "data", Asking(lambda one, stage: prompts.asked_again(softmax, one, stage)))
    rows = {row.stage: row for row in read_rows(tmp_path / "data" / "sft.jsonl", SftRow)}
    (asked,) = prompts.frontend([softmax])
    assert rows["frontend"].prompt == asked.prompt
    assert kernel("a").strip() in rows["midend"].prompt[0].content
    assert {row.completion[0].content for row in rows.values()} == {fenced(kernel("b"))}


def test_in_short_what_was_written_in_another_precision_is_left_out(
    catalogue: Catalogue, stored: Callable[[], StoredJudge], recording: Path, splits: Splits, tmp_path: Path
) -> None:
    prompts = PromptBuilder(stored(), splits, PromptForm.SHORT)
    softmax = catalogue.find("L1_23")

    def asked(reply: KnownReply, stage: Stage) -> tuple[Message, ...] | None:
        return prompts.asked_again(softmax, replace(reply, precision="fp32"), stage)

    (card, *_) = export([recording], splits, tmp_path / "data", Asking(asked))
    assert card.rows == 0
    assert sum(card.left_out.values()) == 2 + 2 + 2  # held out, never judged, and these
