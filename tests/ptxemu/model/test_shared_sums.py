"""Atomics in shared memory that compare and exchange: how often, and in how many passes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from launch_records import access, launch

from ptxemu.counters.launch import Access, LaunchRecord, Space
from ptxemu.counters.machine_code import KernelCode, read_code
from ptxemu.machine.instructions import Opcode
from ptxemu.toolkit import CudaToolkit

SOURCE = """
extern "C" __global__ void sums(const int* x, double* y, int* z) {
    __shared__ double total[64];
    __shared__ int seen[64];
    total[threadIdx.x] = seen[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(total + x[threadIdx.x], y[threadIdx.x]);
    z[threadIdx.x] = atomicCAS(seen + x[threadIdx.x], 0, 1);
    __syncthreads();
    y[threadIdx.x] = total[threadIdx.x] + seen[threadIdx.x];
}
"""
REQUESTS, LANES = 2, 64
"""Of each atomic, by the two warps of the block."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, toolkit: CudaToolkit) -> Path:
    folder = tmp_path_factory.mktemp("sums")
    (folder / "code.cu").write_text(SOURCE, encoding="utf-8")
    nvcc = [str(toolkit.nvcc), "-ccbin", str(toolkit.host_compiler), "-O3", "-arch=sm_90a", "-lineinfo"]
    kept = ["--keep", "--keep-dir", str(folder), "-cubin", "code.cu", "-o", "code.cubin"]
    subprocess.run([*nvcc, *kept], cwd=folder, check=True, timeout=120)
    return folder


def line_of(built: Path, name: str) -> int:
    text = (built / "code.ptx").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(text, 1) if name in line)


def record(code: KernelCode, turns: int, lines: tuple[int, int]) -> LaunchRecord:
    """Both atomics with so many lanes at one word, summed over their requests."""
    memory = tuple(
        replace(
            access(Space.SHARED, Access.ATOMIC, REQUESTS, bytes_per_lane=size),
            rounds=turns, bank_turns=turns, ptx_line=line, wavefronts=REQUESTS,
        )
        for line, size in zip(lines, (8, 4), strict=True)
    )  # fmt: skip
    executed = {one.line: REQUESTS for one in code.instructions if one.line}
    return replace(launch(blocks=1, threads=64, classes={}, memory=memory), ptx_lines=executed)


@pytest.mark.nvcc
def test_a_sum_that_is_a_loop_goes_round_until_all_lanes_have_won(built: Path) -> None:
    """32 lanes of each warp win one after the other, and half of what the other warp wins comes between. An exchange
    that the program itself asks for is done once, in a pass of two operands for each lane."""
    code = read_code(built / "code.cubin", built / "code.ptx")["sums"]
    lines = line_of(built, "atom.shared.add.f64"), line_of(built, "atom.shared.cas.b32")
    assert code.spinning == {lines[0]}
    crowded, apart = (code.counted(record(code, turns, lines)) for turns in (LANES, REQUESTS))
    (loop,) = {
        block.end - block.first
        for block in code.flow.graph.blocks
        for one in code.instructions[block.first : block.end]
        if (one.operation, one.line) == (Opcode.ATOMS_CAS, lines[0])
    }
    assert crowded.machine is not None
    assert apart.machine is not None
    rounds = LANES + (LANES - REQUESTS) / 2
    assert crowded.machine.instructions - apart.machine.instructions == pytest.approx((rounds - REQUESTS) * loop)
    assert [[one.wavefronts for one in each.memory] for each in (crowded, apart)] == [[128, 128], [4, 4]]
    # A round loads eight bytes a lane in two passes and exchanges them in four.
    assert crowded.machine.shared_passes - apart.machine.shared_passes == pytest.approx(
        6 * (rounds - REQUESTS) + 128 - 4
    )
