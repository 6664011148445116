"""The CUDA driver's interface: PTX that a program loads while it runs, launched, counted and checked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "driver.cu"
PTX = re.search(r'R"\((.*?)\)"', SOURCE.read_text(), re.DOTALL)[1].lstrip()  # type: ignore[index]


@pytest.fixture(scope="module")
def program() -> ptxemu.EmulatedProgram:
    return ptxemu.build(SOURCE)


def run(program: ptxemu.EmulatedProgram, *arguments: str, checks: bool = False) -> ptxemu.RunResult:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return program.run(arguments, timeout_s=TIMEOUT_S, checks=checks, streams=quiet)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["text", "library", "errors", "mixed"])
def test_cases_end_as_on_a_gpu(program: ptxemu.EmulatedProgram, case: str, checks: bool) -> None:
    result = run(program, case, checks=checks)
    assert (result.exit_code, result.findings) == (0, () if checks else None)


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["arrays", "boxes", "textures", "pyramid", "graphs", "captured"])
def test_arrays_textures_and_graphs_are_those_of_the_runtime(case: str, checks: bool) -> None:
    result = run(ptxemu.build(SOURCE.with_name("driver_arrays.cu")), case, checks=checks)
    assert (result.exit_code, result.findings) == (0, () if checks else None)


def test_a_module_is_read_from_a_file_and_its_kernels_are_counted(
    program: ptxemu.EmulatedProgram, tmp_path: Path
) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(PTX)
    result = run(program, "file", str(file))
    assert result.exit_code == 0
    assert [launch.name for launch in result.launches] == ["scale", "scale"]
    for launch in result.launches:
        # 1000 floats: 31 whole warps, and a quarter of one
        assert launch.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 125
        assert launch.metrics["smsp__inst_executed.sum"] > 32 * 10


def test_an_access_beyond_the_end_is_found_in_a_loaded_module(program: ptxemu.EmulatedProgram, tmp_path: Path) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(PTX.replace("st.global.f32 [%rd4]", "st.global.f32 [%rd4+4096]"))
    result = run(program, "file", str(file), checks=True)
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "+4096" in text)
    assert [(one.kind, one.kernel, one.ptx_line) for one in result.findings or ()] == [
        (ptxemu.FindingKind.OUT_OF_BOUNDS, "scale", line)
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PTX.replace("ld.global.f32 %f1, [bias];", "txq.width.b32 %r1, [%rd0];"), "questions about textures"),
        ("\x7fELF", "machine code"),
    ],
)
def test_a_module_that_cannot_be_emulated_is_named(
    text: str, reason: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scale.ptx"
    file.write_text(text)
    assert main([str(SOURCE), "--", "file", str(file)]) == 4
    assert reason in capfd.readouterr().err
