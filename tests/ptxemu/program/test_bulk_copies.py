"""Bulk copies: the values of plain ones, late enough that a missing wait shows, and checked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.checks.findings import FindingKind
from ptxemu.program.result import RunResult
from ptxemu.program.run import EmulatedProgram, Streams
from ptxemu.ptx.assembler import NotEmulatable, assemble

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "bulk_copies.cu"
HONEST = ("ring", "library", "memcpy_async", "honest")


@pytest.fixture(scope="module")
def program() -> EmulatedProgram:
    return EmulatedProgram.build(SOURCE)


def run(program: EmulatedProgram, case: str, *, checks: bool = False) -> RunResult:
    quiet = Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run([case], timeout_s=TIMEOUT_S, checks=checks, streams=quiet)


@pytest.mark.parametrize("case", HONEST)
def test_values_are_those_of_plain_copies_and_nothing_is_found(program: EmulatedProgram, case: str) -> None:
    assert run(program, case).exit_code == 0
    checked = run(program, case, checks=True)
    assert checked.exit_code == 0
    assert checked.findings == ()


@pytest.mark.parametrize("case", ["no_wait", "reused", "never_loaded"])
def test_what_is_not_waited_for_has_not_happened(program: EmulatedProgram, case: str) -> None:
    assert run(program, case).exit_code == 1


@pytest.mark.parametrize(
    ("case", "kind", "marks"),
    [
        ("no_wait", FindingKind.RACE_READ_AFTER_WRITE, ("READ", "LOAD")),
        ("one_warp_waits", FindingKind.RACE_READ_AFTER_WRITE, ("READ", "LOAD")),
        ("loaded_over", FindingKind.RACE_WRITE_AFTER_READ, ("LOAD", "READ")),
        ("reused", FindingKind.RACE_WRITE_AFTER_READ, ("REUSE", "STORE")),
        ("left", FindingKind.UNFINISHED_COPY, ("STORE",)),
        ("never_loaded", FindingKind.UNINITIALIZED_SHARED, ("STORE",)),
        ("misaligned", FindingKind.MISALIGNED, ("LOAD",)),
        ("beyond", FindingKind.OUT_OF_BOUNDS, ("LOAD",)),
    ],
)
def test_planted_bugs_are_found_at_their_lines(
    program: EmulatedProgram, case: str, kind: FindingKind, marks: tuple[str, ...]
) -> None:
    findings = [one for one in run(program, case, checks=True).findings or () if one.kind is kind]
    text = SOURCE.read_text().splitlines()
    wanted = {mark: [n for n, line in enumerate(text, 1) if line.endswith(f"// {mark}")] for mark in marks}
    assert any(
        one.source_line in wanted[marks[0]] and (len(marks) == 1 or one.other_source_line in wanted[marks[1]])
        for one in findings
    ), run(program, case, checks=True).findings


def test_bytes_are_counted_in_the_l2_and_not_as_loads(program: EmulatedProgram) -> None:
    (launch,) = run(program, "ring").launches
    assert "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum" not in launch.metrics or (
        launch.metrics["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 0
    )
    copied = 12 * 256 * 4  # and a launch reads a little that no thread asks for
    assert copied <= launch.metrics["dram__bytes_read.sum"] < copied + 4096


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], [%0];",
            "1 coordinates",
        ),
        ("cp.async.bulk.shared::cluster.global.bulk_group [%0], [%1], %2;", "form"),
        ("cp.async.bulk.global.global.bulk_group [%1], [%1], %2;", "form"),
    ],
)
def test_forms_that_do_not_exist_are_named(instruction: str, words: str) -> None:
    text = instruction.replace("%0", "%r1").replace("%1", "%rd1").replace("%2", "%r2")
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; .reg .b64 %rd<2>;"
    with pytest.raises(NotEmulatable, match=words):
        assemble(f"{head}\n{text}\nret; }}")
