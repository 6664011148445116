"""Thread block clusters: who waits for whom, whose shared memory is reached, and what a GPU would refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.program.result import RunResult
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "clusters.cu"
HONEST = ("gather", "push", "signal", "bulk", "leave", "places")


@pytest.fixture(scope="module")
def program() -> EmulatedProgram:
    return EmulatedProgram.build(SOURCE)


def run(program: EmulatedProgram, case: str, scratch: Path, *, checks: bool = False) -> tuple[RunResult, str]:
    """How it ended, and what it wrote to stderr."""
    with (scratch / "errors").open("wb") as errors:
        done = program.run([case], timeout_s=TIMEOUT_S, checks=checks, streams=Streams(stderr=errors))
    return done, (scratch / "errors").read_text()


@pytest.mark.parametrize("case", [*HONEST, "sizes"])
def test_values_and_limits(program: EmulatedProgram, tmp_path: Path, case: str) -> None:
    assert run(program, case, tmp_path)[0].exit_code == 0


@pytest.mark.parametrize("case", HONEST)
def test_nothing_is_found_in_what_is_right(program: EmulatedProgram, tmp_path: Path, case: str) -> None:
    done, _ = run(program, case, tmp_path, checks=True)
    assert (done.exit_code, done.findings) == (0, ())


@pytest.mark.parametrize(
    ("case", "error", "words", "mark"),
    [
        ("rank", "cudaErrorIllegalAddress", "out-of-bounds cluster", "RANK"),
        ("gone", "cudaErrorIllegalAddress", "block that has exited", "GONE"),
        ("deadlock", "cudaErrorLaunchTimeout", "never reach", "DEADLOCK"),
    ],
)
def test_what_a_gpu_punishes_ends_with_its_line(
    program: EmulatedProgram, tmp_path: Path, case: str, error: str, words: str, mark: str
) -> None:
    done, errors = run(program, case, tmp_path)
    assert done.exit_code == 2
    assert error in errors
    assert words in errors
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if text.endswith(f"// {mark}"))
    assert mark == "DEADLOCK" or f"clusters.cu:{line}" in errors


def test_a_sample_takes_whole_clusters(program: EmulatedProgram) -> None:
    quiet = Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    whole, some = (program.run(["gather"], timeout_s=TIMEOUT_S, sample=sample, streams=quiet) for sample in (0, 1))
    assert (whole.exit_code, some.exit_code) == (0, 1)
    counts = [one.launches[0].metrics["smsp__inst_executed.sum"] for one in (whole, some)]
    assert counts[0] == pytest.approx(counts[1], rel=0.01)
