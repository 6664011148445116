"""Copies by tensor maps, against loops over the same elements; the program itself compares."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
PROGRAM = str(Path(__file__).with_name("programs") / "tensor_maps.cu")


@pytest.mark.parametrize("case", ["loads", "swizzles", "im2col", "stores", "clusters", "refusals"])
def test_boxes_hold_the_elements_that_the_map_says(case: str) -> None:
    assert main([PROGRAM, "--", case]) == 0


@pytest.mark.parametrize("case", ["loads", "stores"])
def test_the_checks_find_nothing(case: str) -> None:
    assert main([PROGRAM, "--checks", "--", case]) == 0


def test_an_unaligned_innermost_coordinate_is_an_illegal_instruction() -> None:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    result = ptxemu.build(PROGRAM).run(["unaligned"], timeout_s=TIMEOUT_S, checks=True, streams=quiet)
    assert result.exit_code == 0  # the program has seen cudaErrorIllegalInstruction
    assert "innermost coordinate" in result.faults[0]
    assert [one.kind for one in result.findings or ()] == [ptxemu.FindingKind.MISALIGNED]
