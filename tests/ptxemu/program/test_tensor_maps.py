"""Copies by tensor maps, against loops over the same elements; the program itself compares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
PROGRAM, STORES = (
    str(Path(__file__).with_name("programs") / f"{name}.cu") for name in ("tensor_maps", "tensor_stores")
)


@pytest.mark.parametrize("case", ["loads", "swizzles", "im2col", "clusters", "refusals"])
def test_boxes_hold_the_elements_that_the_map_says(case: str) -> None:
    assert main([PROGRAM, "--", case]) == 0


@pytest.mark.parametrize(("program", "case"), [(PROGRAM, "loads"), (STORES, "all")])
def test_the_checks_find_nothing(program: str, case: str) -> None:
    assert main([program, "--checks", "--", case]) == 0


def ends_of_kinds(case: str, capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    # The program's own end is 0; kernels that the GPU refuses make it 1.
    assert main([STORES, "--", case]) == 1
    return dict(line.split() for line in capfd.readouterr().out.splitlines())


def refused(ends: dict[str, str]) -> set[str]:
    assert set(ends.values()) == {"agrees", "cudaErrorIllegalInstruction"}
    return {kind for kind, what in ends.items() if what == "cudaErrorIllegalInstruction"}


def test_stores_and_reductions_combine_elements_as_the_map_says(capfd: pytest.CaptureFixture[str]) -> None:
    reductions = {"min_f32", "max_f64", "add_s64", "add_u8", "inc_s32", "and_f32"}
    assert refused(ends_of_kinds("apart", capfd)) == {"store_before", "store_swizzled_before", *reductions}


def test_stores_that_begin_before_the_tensor_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    ends = ends_of_kinds("guesses", capfd)
    assert set(ends) - refused(ends) == {"store_at_16_bytes"}
    assert "add_f32_before" in ends


@pytest.mark.parametrize(
    ("kind", "finding", "told"),
    [
        ("min_f32", ptxemu.FindingKind.UNSUPPORTED_REDUCTION, "reduction"),
        ("store_before_above", ptxemu.FindingKind.OUT_OF_BOUNDS, "negative coordinate"),
        ("add_f32_before_left", ptxemu.FindingKind.OUT_OF_BOUNDS, "negative coordinate"),
    ],
)
def test_a_store_that_the_copy_engine_refuses_is_named(kind: str, finding: ptxemu.FindingKind, told: str) -> None:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = ptxemu.build(STORES).run([kind], timeout_s=TIMEOUT_S, checks=True, streams=quiet)
    assert result.exit_code == 0  # the program has seen cudaErrorIllegalInstruction
    assert [one.kind for one in result.findings or ()] == [finding]
    assert told in result.faults[0]


def test_an_unaligned_innermost_coordinate_is_an_illegal_instruction() -> None:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = ptxemu.build(PROGRAM).run(["unaligned"], timeout_s=TIMEOUT_S, checks=True, streams=quiet)
    assert result.exit_code == 0  # the program has seen cudaErrorIllegalInstruction
    assert "innermost coordinate" in result.faults[0]
    assert [one.kind for one in result.findings or ()] == [ptxemu.FindingKind.MISALIGNED]
