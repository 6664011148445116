"""Copies by tensor maps, against loops over the same elements; the program itself compares."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import needs_tools

from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
PROGRAM = str(Path(__file__).with_name("programs") / "tensor_maps.cu")


@pytest.mark.parametrize("case", ["loads", "swizzles", "im2col", "stores", "clusters", "refusals"])
def test_boxes_hold_the_elements_that_the_map_says(case: str) -> None:
    assert main([PROGRAM, "--", case]) == 0


@pytest.mark.parametrize("case", ["loads", "stores"])
def test_the_checks_find_nothing(case: str) -> None:
    assert main([PROGRAM, "--checks", "--", case]) == 0
