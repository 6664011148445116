"""The checks find every planted bug at its line, and nothing in its honest look-alikes."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools
from planted_programs import PlantedCase, captured_tools, planted_cases

from ptxemu.checks.findings import FindingKind
from ptxemu.program.result import RunResult
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
CASES = planted_cases()
CAPTURED = json.loads((Path(__file__).parents[2] / "fixtures" / "sanitizer" / "planted_h200.json").read_text())["cases"]
MISSED_BY_COMPUTE_SANITIZER = {
    "memory/freed_row",  # its memory was given to another allocation; initcheck sees the consequence
    "initialization/halo_never_loaded",  # shared memory is not its initcheck's business
    "initialization/bins_never_zeroed",
    "races/counted_before_all_are_zero",  # a store against atomics
    "barriers/lane_outside_its_mask",
}
Run = Callable[..., RunResult]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a case; each program is built once."""
    built: dict[Path, EmulatedProgram] = {}

    def run_case(case: PlantedCase, *, checks: bool = True) -> RunResult:
        if case.program not in built:
            built[case.program] = EmulatedProgram.build(case.program)
        quiet = Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return built[case.program].run([case.name], timeout_s=TIMEOUT_S, checks=checks, streams=quiet)

    return run_case


@pytest.mark.parametrize("case", [case for case in CASES if case.kind], ids=str)
def test_planted_bug_is_found_at_its_line(run: Run, case: PlantedCase) -> None:
    findings = run(case).findings
    found = [one for one in findings or () if (one.tool, one.kind) == (case.tool, case.kind)]
    assert found, findings
    assert any(case.line in (one.source_line, one.other_source_line) for one in found), found
    assert all(one.source_file == str(case.program) for one in found)


@pytest.mark.parametrize("case", [case for case in CASES if not case.kind], ids=str)
def test_honest_look_alike_is_clean(run: Run, case: PlantedCase) -> None:
    emulation = run(case)
    assert emulation.findings == ()
    assert emulation.exit_code == 0


def test_compute_sanitizer_says_the_same_but_for_what_it_misses() -> None:
    """The two tests above hold the emulated device to the table of planted bugs; this holds the table to a GPU."""
    real = {str(case): captured_tools(CAPTURED[str(case)]) for case in CASES}
    assert not any(real[str(case)] for case in CASES if case.tool is None)
    missed = {str(case) for case in CASES if case.tool is not None and case.tool not in real[str(case)]}
    assert missed == MISSED_BY_COMPUTE_SANITIZER


def test_every_class_is_planted_twice() -> None:
    planted = Counter(case.kind for case in CASES if case.kind)
    races = sum(planted[kind] for kind in FindingKind if kind.startswith("race_"))
    assert races >= 6
    singles = {kind for kind in FindingKind if not kind.startswith("race_") and planted[kind] < 2}
    # Those of the tensor path and leaks have planted programs of their own, see test_bulk_copies.py,
    # test_tensor_maps.py, test_tensor_path.py and test_several_findings.py.
    elsewhere = {
        FindingKind.UNFINISHED_COPY,
        FindingKind.MISSING_PROXY_FENCE,
        FindingKind.MISSING_WGMMA_FENCE,
        FindingKind.UNFINISHED_PRODUCT,
        FindingKind.UNSUPPORTED_REDUCTION,
    }
    assert singles == {FindingKind.MISSING_LANES, FindingKind.LEAK, FindingKind.API_ERROR} | elsewhere


def test_without_checks_nothing_is_reported(run: Run) -> None:
    case = next(case for case in CASES if case.name == "tree_without_barrier")
    assert run(case, checks=False).findings is None


def test_finding_says_where_in_the_grid(run: Run) -> None:
    case = next(case for case in CASES if case.name == "store_past_end")
    (finding,) = run(case).findings or ()
    assert finding.kernel == "store_to_n"
    assert (finding.block, finding.thread) == ((1, 0, 0), (72, 0, 0))
    assert "4 bytes" in finding.message
    assert "800" in finding.message


def test_blocks_on_several_threads_report_the_lowest(run: Run) -> None:
    case = next(case for case in CASES if case.name == "tail_never_copied")
    (finding,) = run(case).findings or ()
    assert (finding.block, finding.thread, finding.count) == ((1, 0, 0), (122, 0, 0), 6)
