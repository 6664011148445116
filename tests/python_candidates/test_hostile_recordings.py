"""Recordings that a candidate has forged cost no more time than their length, and show nothing of this machine."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from recorder_support import Recorded, vector_add

from kernelblaster.devices.failures import BuildFailure
from kernelblaster.problems.driver_names import launcher_arguments
from kernelblaster.python_candidates.cuda_text import cuda_text
from kernelblaster.python_candidates.plan import (
    ANSWER,
    Argument,
    CandidateRecording,
    CompiledKernel,
    RecorderAnswer,
    Refusal,
    RefusalKind,
)
from kernelblaster.python_candidates.recording import read_recording
from kernelblaster.sandbox.limits import CommandResult

ENDED = CommandResult(code=0, exceeded=None, output="", output_bytes=0, seconds=1.0)
LONG = 1 << 20


def text_of(recorded: Recorded, *kernels: CompiledKernel) -> str:
    recording = recorded.recording.model_copy(update={"kernels": kernels})
    return cuda_text(recording, recorded.request.extents, launcher_arguments(vector_add().driver_path))


@pytest.mark.parametrize(
    "hostile",
    [
        lambda ptx: ptx.replace("\tret;", "\tret;" + " " * LONG + "x"),
        lambda ptx: ptx.replace("\tret;", "\t.loc 1 2 3 // " + "candidate.py:1:1 " * (LONG // 17)),
        lambda ptx: ".visible .entry a(\n" * (LONG // 20),
        lambda ptx: ".visible .entry a() {\n" * (LONG // 20),
        lambda ptx: ".visible .entry a(" + ")" * LONG,
        lambda ptx: ptx.replace("\tret;", "{" * LONG),
        lambda ptx: ".global .b8 a[1] = {0};\n" * (LONG // 25) + ptx.replace("\tret;", "\tadd x;" * (LONG // 7)),
    ],
    ids=["blanks", "places", "entries", "bodies", "parentheses", "braces", "globals"],
)
def test_no_text_takes_longer_than_in_proportion_to_its_length(recorded: Recorded, hostile: object) -> None:
    """A quadratic search would take hours for these, and hold the interpreter's lock meanwhile."""
    kernel = recorded.recording.kernels[0]
    began = time.process_time()
    with suppress(BuildFailure):
        text_of(recorded, CompiledKernel(name=kernel.name, ptx=hostile(kernel.ptx)))  # type: ignore[operator]
    assert time.process_time() - began < 20


def test_assembly_of_the_candidate_may_hold_braces_at_the_beginning_of_a_line(recorded: Recorded) -> None:
    kernel = recorded.recording.kernels[0]
    inline = "// begin inline asm\n{\n.reg .pred p;\n}\n// end inline asm\n\tret;"
    text = text_of(recorded, CompiledKernel(name=kernel.name, ptx=kernel.ptx.replace("\tret;", inline)))
    lines = [line.strip() for line in text.splitlines()]
    inside = lines.index(r'".reg .pred p;\n"')
    assert lines[inside - 1 : inside + 3] == [r'"{\n"', r'".reg .pred p;\n"', r'"}\n"', r'"ret;\n"']


def test_kernels_never_share_a_name(recorded: Recorded) -> None:
    kernel = recorded.recording.kernels[0]
    names = ("softmax_1", "softmax", "exp")  # the last is a function of the C library
    text = text_of(recorded, *(CompiledKernel(name=name, ptx=kernel.ptx) for name in names))
    defined = [line.split("(")[-2].split()[-1] for line in text.splitlines() if "__global__" in line]
    assert len(set(defined)) == len(defined) == 3
    assert "exp" not in defined


@pytest.mark.parametrize("value", [10**400, 1 << 64, -(1 << 64)])
def test_a_number_that_no_register_holds_is_refused(value: int) -> None:
    assert not isinstance(_argument(value), int)


def _argument(value: int) -> object:
    try:
        return Argument(value=value).value
    except ValidationError:
        return None


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_numbers_without_end_cross_the_wall_as_they_are(recorded: Recorded, value: float) -> None:
    plan = recorded.recording.plans[0]
    launch = plan.steps[0].model_copy(update={"arguments": (Argument(value=value),)})
    plans = (plan.model_copy(update={"steps": (launch,)}),)
    answer = RecorderAnswer(recording=recorded.recording.model_copy(update={"plans": plans}))
    read = RecorderAnswer.model_validate_json(answer.model_dump_json())
    assert read.recording is not None
    found = read.recording.plans[0].steps[0].arguments[0].value  # type: ignore[union-attr]
    assert str(found) == str(value)


def test_what_a_recorder_says_is_printable() -> None:
    said = "\x1b[31m\u202e\x00<b>\nmore"
    refusal = Refusal(kind=RefusalKind.LAUNCH, reason=said, hint=said, log=said)
    assert all(text.isascii() and text.isprintable() for text in (refusal.reason, refusal.hint))
    assert all(line.isascii() and line.isprintable() for line in refusal.log.splitlines())
    warned = CandidateRecording(kernels=(), plans=(), warnings=(said,))
    assert all(text.isascii() and text.isprintable() for text in warned.warnings)


def test_a_link_to_a_file_of_this_machine_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("KEY=verysecret")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / ANSWER).symlink_to(secret)
    with pytest.raises(BuildFailure) as caught:
        read_recording(scratch, ENDED, 1)
    assert "verysecret" not in caught.value.reason + caught.value.log


def test_what_cannot_be_read_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / ANSWER).write_text('{"verysecret": "\\u001b[31m"}')
    with pytest.raises(BuildFailure) as caught:
        read_recording(tmp_path, replace(ENDED, output="noise"), 1)
    assert "\x1b" not in caught.value.reason + caught.value.log
