"""Exit codes that say what happened on the device, and host memory in kernels."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from emulator_support import needs_tools

from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
PROGRAM = str(Path(__file__).with_name("programs") / "endings.cu")


@pytest.mark.parametrize("checks", [[], ["--checks"]])
@pytest.mark.parametrize("case", ["pinned", "registered", "managed"])
def test_kernels_use_host_memory_at_its_own_address(case: str, checks: list[str]) -> None:
    assert main([PROGRAM, *checks, "--", case]) == 0


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("host_writes", "wrote to device memory"),
        ("host_reads", "read device memory"),
        ("host_copies", "of an allocation of 4000"),
        ("host_after_free", "in no allocation"),
        ("host_allocates", "wrote to device memory"),
    ],
)
def test_host_code_cannot_reach_device_memory(case: str, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([PROGRAM, "--", case]) == 128 + signal.SIGSEGV
    told = capfd.readouterr().err
    assert what in told
    assert f"endings.cu:{line_of(case)}" in told


@pytest.mark.parametrize("case", ["large", "too_large", "filled"])
def test_allocations_cost_what_is_written_and_end_at_the_devices_memory(case: str) -> None:
    assert main([PROGRAM, "--timeout", "20", "--", case]) == 0


def line_of(mark: str) -> int:
    """The line of the program that ends with the mark."""
    lines = Path(PROGRAM).read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"// {mark}"))


def test_a_program_without_an_end_says_where_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([PROGRAM, "--timeout", "2", "--", "waits_for_host"]) == 124
    told = capfd.readouterr().err
    assert f"endings.cu:{line_of('waits')}, launched at endings.cu:{line_of('launches')}" in told
    assert main([PROGRAM, "--timeout", "1", "--", "without_end"]) == 124
    assert f"host code was executed at endings.cu:{line_of('goes on')}" in capfd.readouterr().err


@pytest.mark.parametrize("case", ["fault_ignored", "freed_host"])
def test_a_kernel_that_failed_is_no_success(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([PROGRAM, "--", case]) == 1
    assert "endings.cu" in capfd.readouterr().err


def test_a_launch_that_was_refused_unseen_is_no_success(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([PROGRAM, "--", "refused_unseen"]) == 1
    assert "add_one(int*, int) was refused with cudaErrorInvalidConfiguration" in capfd.readouterr().err
    assert main([PROGRAM, "--", "refused_seen"]) == 0


def test_what_is_missing_at_run_time_ends_with_4(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([PROGRAM, "--", "attribute"]) == 4
    assert "timeline_semaphore_interop_supported" in capfd.readouterr().err
