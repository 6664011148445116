"""compute-sanitizer's reports as captured on an H200."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.devices.cuda.sanitizer import MAX_FINDINGS, TOOLS, parse_report, tool_failure

CAPTURED = Path(__file__).parents[1] / "fixtures" / "sanitizer"


def test_out_of_bounds_is_found_once_per_place() -> None:
    (finding,) = parse_report("memcheck", (CAPTURED / "memcheck_out_of_bounds.txt").read_text())
    assert finding.tool == "memcheck"
    assert finding.message == "Invalid __global__ write of size 4 bytes"
    assert finding.location is not None
    assert finding.location.startswith("oob(float *)")


def test_a_race_is_found() -> None:
    (finding,) = parse_report("racecheck", (CAPTURED / "racecheck_race.txt").read_text())
    assert finding.tool == "racecheck"
    assert "Write access" in finding.message


@pytest.mark.parametrize(
    "name",
    [
        "memcheck_race",
        "racecheck_out_of_bounds",
        "initcheck_race",
        "initcheck_out_of_bounds",
        "synccheck_race",
        "synccheck_out_of_bounds",
    ],
)
def test_clean_reports_have_no_findings(name: str) -> None:
    tool = name.split("_")[0]
    assert tool in TOOLS
    assert parse_report(tool, (CAPTURED / f"{name}.txt").read_text()) == []


def test_findings_are_bounded() -> None:
    text = "".join(f"========= Invalid read {i}\n=========     at k+0x{i:x}\n" for i in range(100))
    assert len(parse_report("memcheck", text)) == MAX_FINDINGS


def test_a_tool_that_cannot_work_is_not_a_finding() -> None:
    assert tool_failure("========= COMPUTE-SANITIZER\n========= Internal Sanitizer Error: out of memory\n") is not None
    for report in CAPTURED.iterdir():
        assert tool_failure(report.read_text()) is None
