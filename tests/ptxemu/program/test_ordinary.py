"""What ordinary programs do beside launching: graphs of nodes, boxes of memory, allocation in kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "ordinary.cu"


@pytest.fixture(scope="module")
def program() -> ptxemu.EmulatedProgram:
    return ptxemu.build(SOURCE)


def run(program: ptxemu.EmulatedProgram, case: str, *, checks: bool) -> ptxemu.RunResult:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run([case], timeout_s=TIMEOUT_S, checks=checks, streams=quiet)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["graph", "circle", "child", "boxes", "heap", "small_heap", "one_device"])
def test_cases_end_as_on_a_gpu(program: ptxemu.EmulatedProgram, case: str, checks: bool) -> None:
    result = run(program, case, checks=checks)
    assert (result.exit_code, result.findings) == (0, () if checks else None)


def test_kernels_of_a_graph_are_counted_each_time(program: ptxemu.EmulatedProgram) -> None:
    names = [launch.name.split("(")[0] for launch in run(program, "graph", checks=False).launches]
    assert sorted(names) == ["add"] * 3 + ["scale"] * 6


def test_memory_that_is_freed_twice_in_a_kernel_is_found(program: ptxemu.EmulatedProgram) -> None:
    result = run(program, "freed_twice", checks=True)
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if text.endswith("// AGAIN"))
    assert [(one.kind, one.source_line) for one in result.findings or ()] == [(ptxemu.FindingKind.USE_AFTER_FREE, line)]
    assert result.faults
