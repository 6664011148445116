"""Blocks that share out work among themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]

QUEUE = """
#include <cstdio>
__device__ int next;
__global__ void draw(int* taker, int items) {
    while (true) {
        const int item = atomicAdd(&next, 1);
        if (item >= items) return;
        float sum = 0;
        for (int k = 0; k < 2000; ++k) sum = sum * 0.5f + float(item);
        taker[item] = sum < 0 ? -1 : blockIdx.x;
    }
}
int main() {
    int* taker;
    int taken[64], most = 0, of[16] = {};
    cudaMalloc(&taker, sizeof taken);
    draw<<<16, 1>>>(taker, 64);
    cudaMemcpy(taken, taker, sizeof taken, cudaMemcpyDeviceToHost);
    for (int block : taken) most = ++of[block] > most ? of[block] : most;
    std::printf("%d", most);
}
"""


def test_blocks_that_draw_work_share_it_out_while_they_are_counted(tmp_path: Path) -> None:
    (tmp_path / "queue.cu").write_text(QUEUE)
    program = EmulatedProgram.build(tmp_path / "queue.cu")
    with (tmp_path / "printed").open("wb") as printed:
        assert program.run(timeout_s=TIMEOUT_S, streams=Streams(stdout=printed)).exit_code == 0
    assert int((tmp_path / "printed").read_text()) <= 6, "of 64 items for 16 blocks"
