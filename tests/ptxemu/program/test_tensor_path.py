"""A product by tensor maps, mbarriers and wgmma: its values, and mistakes that the checks find and name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.checks.findings import FindingKind
from ptxemu.metrics.names import NsightMetric
from ptxemu.program.result import RunResult
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "tensor_path.cu"


@pytest.fixture(scope="module")
def program() -> EmulatedProgram:
    return EmulatedProgram.build(SOURCE)


def run(program: EmulatedProgram, case: str, *, checks: bool) -> RunResult:
    quiet = Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run([case], timeout_s=TIMEOUT_S, checks=checks, streams=quiet)


@pytest.mark.parametrize("case", ["ring", "staged"])
def test_products_are_right_and_nothing_is_found(program: EmulatedProgram, case: str) -> None:
    plain, checked = run(program, case, checks=False), run(program, case, checks=True)
    assert (plain.exit_code, checked.exit_code, checked.findings) == (0, 0, ())
    assert plain.launches[0].metrics[NsightMetric.INSTRUCTIONS] > 0
    assert plain.launches[0].metrics[NsightMetric.PIPE_TENSOR] > 0


@pytest.mark.parametrize(
    ("case", "kind", "marks"),
    [
        ("too_many_bytes", FindingKind.BARRIER_DEADLOCK, ("WAIT",)),
        ("too_few_bytes", FindingKind.BARRIER_DEADLOCK, ("WAIT",)),
        ("wrong_phase", FindingKind.BARRIER_DEADLOCK, ("WAIT",)),
        ("released_early", FindingKind.RACE_WRITE_AFTER_READ, ("LOAD", "MULTIPLY")),
        ("no_wgmma_fence", FindingKind.MISSING_WGMMA_FENCE, ("MULTIPLY",)),
        ("no_proxy_fence", FindingKind.MISSING_PROXY_FENCE, ("MULTIPLY", "WRITE")),
        ("overwritten", FindingKind.RACE_WRITE_AFTER_READ, ("WRITE", "MULTIPLY")),
        ("half_group", FindingKind.BARRIER_DEADLOCK, ("FINISH",)),
        ("misplaced", FindingKind.MISALIGNED, ("MULTIPLY",)),
        ("beyond", FindingKind.OUT_OF_BOUNDS, ("MULTIPLY",)),
        ("never_committed", FindingKind.UNFINISHED_PRODUCT, ("MULTIPLY",)),
        ("never_waited", FindingKind.UNFINISHED_PRODUCT, ("MULTIPLY",)),
    ],
)
def test_mistakes_are_found_at_their_lines(
    program: EmulatedProgram, case: str, kind: FindingKind, marks: tuple[str, ...]
) -> None:
    findings = run(program, case, checks=True).findings or ()
    text = SOURCE.read_text().splitlines()
    wanted = {mark: [n for n, line in enumerate(text, 1) if line.endswith(f"// {mark}")] for mark in marks}
    assert any(
        one.kind is kind
        and one.source_line in wanted[marks[0]]
        and (len(marks) == 1 or one.other_source_line in wanted[marks[1]])
        for one in findings
    ), findings


@pytest.mark.parametrize(
    ("case", "missing"),
    [
        ("too_many_bytes", "16 bytes of those expected do not come"),
        ("too_few_bytes", "16 bytes more than expected have come"),
        ("copy_too_many_bytes", "16 bytes of those expected do not come"),
        ("copy_too_few_bytes", "16 bytes more than expected have come"),
    ],
)
def test_an_mbarrier_that_never_opens_ends_the_launch(program: EmulatedProgram, case: str, missing: str) -> None:
    result = run(program, case, checks=False)
    assert result.exit_code != 0
    assert "mbarrier" in result.faults[0]
    assert missing in result.faults[0]
