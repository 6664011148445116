"""Textures, surfaces and arrays: `programs/textures.cu` compares each value with what a GPU's rules say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.counters.launch import SECTOR_BYTES

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "textures.cu"


@pytest.fixture(scope="module")
def program() -> ptxemu.EmulatedProgram:
    return ptxemu.build(SOURCE)


def run(program: ptxemu.EmulatedProgram, case: str, *, checks: bool = False, sample: int = 0) -> ptxemu.RunResult:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run([case], timeout_s=TIMEOUT_S, checks=checks, sample=sample, streams=quiet)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["plane", "pitched", "memory", "boxes", "gathered", "surfaces"])
def test_values_are_those_of_a_gpu(program: ptxemu.EmulatedProgram, case: str, checks: bool) -> None:
    result = run(program, case, checks=checks)
    assert (result.exit_code, result.findings) == (0, () if checks else None)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["mipmaps", "cubes", "faces", "layers", "borders"])
def test_levels_faces_layers_and_borders_are_those_of_the_guide(case: str, checks: bool) -> None:
    result = run(ptxemu.build(SOURCE.with_name("levels.cu")), case, checks=checks)
    assert (result.exit_code, result.findings) == (0, () if checks else None)


def test_a_write_beyond_the_edge_of_a_surface_is_found_at_its_line(program: ptxemu.EmulatedProgram) -> None:
    result = run(program, "trapped", checks=True)
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "400, 0)" in text)
    assert [(one.kind, one.source_line) for one in result.findings or ()] == [(ptxemu.FindingKind.OUT_OF_BOUNDS, line)]
    assert result.exit_code == 0
    assert result.faults


def test_texels_are_read_once_from_memory(program: ptxemu.EmulatedProgram) -> None:
    (launch,) = run(program, "memory").launches
    texels = 64 * (16 + 4 + 2)
    stored = 96 * (16 + 16 + 4)
    assert launch.metrics["dram__bytes_read.sum"] >= texels
    assert launch.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 0
    assert launch.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == stored / SECTOR_BYTES
    assert launch.metrics["lts__t_sectors_op_read.sum"] >= texels / SECTOR_BYTES
