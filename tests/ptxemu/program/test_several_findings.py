"""What the checks find beside the first error of a kernel, and device memory that is never freed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "several.cu"


def lines_with(text: str) -> list[int]:
    return [number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]


@pytest.fixture(scope="module")
def program() -> ptxemu.EmulatedProgram:
    return ptxemu.build(SOURCE)


def run(program: ptxemu.EmulatedProgram, case: str, *, leaks: bool = False) -> ptxemu.RunResult:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run([case], timeout_s=TIMEOUT_S, checks=True, leaks=leaks, streams=quiet)


def test_a_kernel_goes_on_after_its_first_error(program: ptxemu.EmulatedProgram) -> None:
    result = run(program, "bugs")
    found = {one.source_line: one.kind for one in result.findings or ()}
    beyond, misaligned = ptxemu.FindingKind.OUT_OF_BOUNDS, ptxemu.FindingKind.MISALIGNED
    kinds = [beyond, beyond, beyond, misaligned]
    assert found == dict(zip(lines_with("// BUG ")[:4], kinds, strict=True))
    assert all(one.count == 8 for one in result.findings or ())
    # What the program sees is the first error, as on a GPU.
    assert len(result.faults) == 1
    assert "load" in result.faults[0]


def test_lanes_that_are_right_are_executed(program: ptxemu.EmulatedProgram) -> None:
    (finding,) = run(program, "lanes").findings or ()
    assert (finding.block, finding.thread, finding.count) == ((1, 0, 0), (36, 0, 0), 1)


def test_a_loop_that_an_error_keeps_alive_ends(program: ptxemu.EmulatedProgram) -> None:
    result = run(program, "loop")
    assert result.exit_code == 0
    assert [one.kind for one in result.findings or ()] == [ptxemu.FindingKind.OUT_OF_BOUNDS]


def test_memory_that_is_never_freed_is_found_where_it_was_allocated(program: ptxemu.EmulatedProgram) -> None:
    result = run(program, "leaks", leaks=True)
    assert {(one.kind, one.source_line, one.count) for one in result.findings or ()} == {
        (ptxemu.FindingKind.LEAK, *lines_with("// LEAK once"), 1),
        (ptxemu.FindingKind.LEAK, *lines_with("// LEAK twice"), 2),
    }
    assert run(program, "leaks").findings == ()


def test_a_leak_is_told_on_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(SOURCE), "--leaks", "--", "leaks"]) == 1
    assert "leak: 400 bytes" in capfd.readouterr().err
