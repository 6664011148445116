"""Sampled launches: counts scaled from some of the blocks, and said to be so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools
from sampled_kernels import TABLE

from ptxemu.errors import ProgramNotEmulatable
from ptxemu.metrics.profile import KernelLaunch
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
SAXPY = Path(__file__).with_name("programs") / "saxpy.cu"
COUNTS = (
    "smsp__inst_executed.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "dram__bytes_read.sum",
)


@pytest.fixture(scope="module")
def program() -> EmulatedProgram:
    return EmulatedProgram.build(SAXPY)


def launch(program: EmulatedProgram, **options: int) -> KernelLaunch:
    """The kernel over a million elements: 3907 blocks, of which an SM has 30 with some 6,500 warp instructions."""
    quiet = Streams(stdout=subprocess.DEVNULL)
    (one,) = program.run(["1000000"], timeout_s=TIMEOUT_S, streams=quiet, **options).launches
    return one


def test_counts_of_a_sample_stand_for_the_launch(program: EmulatedProgram) -> None:
    whole, sampled = launch(program), launch(program, sample=20_000)
    for name in COUNTS:
        assert sampled.metrics[name] == pytest.approx(whole.metrics[name], rel=0.01)
    assert sampled.notes["sampled"].startswith("2.3% of the blocks")
    assert "sampled" not in whole.notes


def test_a_sample_that_has_room_for_all_is_no_sample(program: EmulatedProgram) -> None:
    assert launch(program, sample=10**9) == launch(program)


def test_a_program_that_a_sample_cannot_stand_for_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "table.cu"
    main = "int main() { float* x; cudaMalloc(&x, 8 << 20); launch_gpu_implementation(x + (1 << 20), x, 1024); }"
    source.write_text(f"{TABLE}{main}\n")
    table = EmulatedProgram.build(source)
    assert len(table.run(timeout_s=TIMEOUT_S).launches) == 2
    with pytest.raises(ProgramNotEmulatable, match=r"gather.*table\.cu:9"):
        table.run(timeout_s=TIMEOUT_S, sample=1000)


def test_samples_do_not_depend_on_the_number_of_threads(
    program: EmulatedProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTXEMU_THREADS", "1")
    alone = launch(program, sample=20_000)
    monkeypatch.setenv("PTXEMU_THREADS", "4")
    assert launch(program, sample=20_000) == alone
