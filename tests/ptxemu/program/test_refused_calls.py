"""Calls of the runtime that fail: their codes, and warnings where the program may have overlooked them."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
PROGRAM = Path(__file__).with_name("programs") / "refused_calls.cu"
INVALID = "was refused with cudaErrorInvalidValue, invalid argument"
SENTENCES = {
    "twice": f"a free {INVALID}: no allocation begins there, or it was freed before",
    "inside": f"a free {INVALID}: no allocation begins there, or it was freed before",
    "to freed": f"a copy of 400 bytes {INVALID}: its destination lies in no allocation, or in one that was freed",
    "size": f"a copy of 800 bytes {INVALID}: its destination reaches beyond the end of its allocation",
    "from": f"a copy of 400 bytes {INVALID}: its source reaches beyond the end of its allocation",
    "direction": f"a copy of 400 bytes {INVALID}: cudaMemcpyHostToDevice says otherwise than the pointers, which go"
    " from device to host",
    "async": f"a copy of 400 bytes {INVALID}: cudaMemcpyDeviceToHost says otherwise than the pointers, which go"
    " from host to device",
    "fill": f"a fill of 401 bytes {INVALID}: its memory reaches beyond the end of its allocation",
    "host": f"a fill of 4 bytes {INVALID}: its memory is the host's, and not pinned, 3 times",
}


def line_of(mark: str) -> int:
    """The line that ends with the mark."""
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"// {mark}"))


def ended(case: str) -> ptxemu.RunResult:
    return ptxemu.build(PROGRAM).run([case], timeout_s=TIMEOUT_S)


def test_what_failed_unasked_is_told_with_its_line() -> None:
    result = ended("ignored")
    assert result.exit_code == 0  # all returned the codes that it expects
    *told, large = result.warnings
    since = "; the program has not called cudaGetLastError since"
    assert told == [f"refused_calls.cu:{line_of(mark)}: {text}{since}" for mark, text in SENTENCES.items()]
    assert large.startswith(
        f"refused_calls.cu:{line_of('large')}: an allocation of {1 << 50} bytes was refused with cuda"
    )


def test_a_copy_beyond_a_variable_is_told() -> None:
    (warning,) = ended("variable").warnings
    assert warning.startswith(
        f"refused_calls.cu:{line_of('variable')}: a copy of a variable of 20 bytes was refused with"
    )


@pytest.mark.parametrize("case", ["asked", "fine"])
def test_a_program_that_asks_for_the_error_is_not_warned(case: str) -> None:
    result = ended(case)
    assert (result.exit_code, result.warnings, result.faults) == (0, (), ())


def test_overlooked_errors_are_findings_of_the_checks() -> None:
    result = ptxemu.build(PROGRAM).run(["ignored"], timeout_s=TIMEOUT_S, checks=True)
    assert result.findings is not None
    assert result.warnings == ()
    found = {one.place: one for one in result.findings}
    assert {one.kind for one in result.findings} == {ptxemu.FindingKind.API_ERROR}
    assert found[f"refused_calls.cu:{line_of('host')}"].count == 3
    assert found[f"refused_calls.cu:{line_of('twice')}"].describe().startswith(SENTENCES["twice"])


def test_overlooked_errors_are_warnings_and_no_failure(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(PROGRAM), "--", "ignored"]) == 0
    assert f"refused_calls.cu:{line_of('twice')}: a free {INVALID}" in capfd.readouterr().err
