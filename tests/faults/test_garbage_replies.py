"""A model that answers garbage: no traceback, nothing believed, and the run ends as with one that answers well."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import stand_ins
from fault_runs import Bench, Run, differences
from fault_starts import Scenario, answer_exchange, completion, json_lines

from kernelblaster.errors import ExitCode

SEARCH = Scenario(1, ("--steps=2",), ruled=False)
BY_FILES = Scenario(1, ("--steps=2",), model="batch_exchange", ruled=False)

BODIES = {
    "cut off": json.dumps(completion("```cuda")).encode()[:90],
    "no completion": b'{"choices": 7}',
    "a page": b"<html>gateway</html>",
    "bytes": bytes(range(256)),
    "nothing": b"",
    "megabytes": b'{"choices": "' + b"x" * (33 << 20) + b'"}',
}
TEXTS = {
    "empty": "",
    "binary": "\x00\x01\ufffd```cuda\n\x00\x07\n```",
    "long": "```cuda\n// kernel: us_110\n" + "// and so on\n" * 200_000 + "```",
    "nested": '{"a":' * 100_000,
    "wrong types": '{"veto": "yes", "changes": {"kind": 3}, "state": 5, "why": []}',
    "open fence": "```cuda\nvoid launch_gpu_implementation(",
}


def some(cases: dict[str, Any], *default: str) -> Iterator[Any]:
    """Cases by name; those that are not named are slow."""
    for name, case in cases.items():
        yield pytest.param(case, id=name, marks=[] if name in default else [pytest.mark.slow])


@pytest.mark.parametrize("body", [*some(BODIES, "cut off", "megabytes")])
def test_bodies_that_are_no_replies(workspace: Bench, tmp_path: Path, body: bytes) -> None:
    """Twice in a row end the run with one line; the next start goes on."""
    garbage = 2

    def answer(messages: Sequence[dict[str, str]]) -> str | bytes:
        nonlocal garbage
        if len(messages) == 4 and garbage:
            garbage -= 1
            return body
        return stand_ins.answer(messages)

    with workspace.open(SEARCH, tmp_path / "run", answer) as run:
        assert run.start() == ExitCode.MODEL
        assert "Traceback" not in run.errors
        assert sum(line.startswith("error: ") for line in run.errors.splitlines()) == 1
        run.finish()
    assert len(run.deaths) == 1


@pytest.mark.parametrize("text", [*some(TEXTS, "binary", "nested")])
def test_replies_that_say_nothing(workspace: Bench, tmp_path: Path, text: str) -> None:
    with workspace.open(SEARCH, tmp_path / "run", lambda messages: text) as run:
        assert run.start() == ExitCode.NO_IMPROVEMENT, run.errors
    assert "Traceback" not in run.errors
    assert not list(run.run.glob("**/final_rl_cuda_perf.cu"))
    run.check_books()


def test_a_file_of_replies_that_is_full_of_garbage(workspace: Bench, tmp_path: Path) -> None:
    sound = workspace.undisturbed(BY_FILES, tmp_path / "sound")
    with workspace.open(BY_FILES, tmp_path / "run") as run:
        while run.start() == ExitCode.WAITING:
            _spoil(run)
            assert answer_exchange(run.run / "exchange")
            _spoil(run)
    assert run.codes[-1] == ExitCode.OK, run.errors
    assert "is skipped" in run.errors
    run.check_nothing_repeated()
    assert not list(differences(sound.result(), run.result()))


def _spoil(run: Run) -> None:
    """Add to the replies what is cut off, of the wrong type, not asked for, too long, and what was said before."""
    folder = run.run / "exchange"
    asked = json_lines(folder / "requests-001.jsonl")[0]["custom_id"]
    other = {"status_code": 200, "body": completion("```cuda\nsomething else\n```")}
    lines = [
        b'{"custom_id": "abc", "resp',
        b"\xff\xfe\x00\x01",
        b"[1, 2]",
        b'{"custom_id": 7, "response": []}',
        json.dumps({"custom_id": "f" * 64, "response": other}).encode(),
        json.dumps({"custom_id": "e" * 64, "response": {"status_code": 200, "body": "x" * (2 << 20)}}).encode(),
    ]
    with (folder / "other-replies.jsonl").open("ab") as file:
        file.write(b"\n".join(lines) + b"\n")
    # Of several answers the first counts, by the names of files and their lines.
    if (folder / "replies.jsonl").exists():
        (folder / "second-replies.jsonl").write_text(json.dumps({"custom_id": asked, "response": other}) + "\n")
