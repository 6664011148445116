"""The order in which warps and blocks take turns: what nothing orders shows, what is ordered does not care."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]

TOTALS = """
__device__ float totals[8 * 64];
__global__ void clear() { totals[blockIdx.x * 64 + threadIdx.x] = 0; }
__global__ void add(const float* x, long n) {
    volatile float* mine = totals + WHERE;
    for (int k = 0; k < ROUNDS; ++k) ADD;
}
__global__ void store(float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = totals[(WHICH) * 64 + i % 64];
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    clear<<<8, 64>>>();
    add<<<8, 256>>>((const float*)x, n * n);
    store<<<(n * n + 255) / 256, 256>>>((float*)output, n * n);
}
"""
ADD, ADD_ATOMICALLY = "*mine = *mine + x[k % 16]", "atomicAdd((float*)mine, x[k % 16])"
ROUNDS = 512  # so many that no order of turns keeps every update
BETWEEN_WARPS, BETWEEN_BLOCKS = "blockIdx.x * 64 + threadIdx.x % 64", "threadIdx.x % 64"

SCAN = """
__device__ int turn;
__device__ volatile int done;
__global__ void reset() { turn = 0; done = 0; }
__global__ void ordered(const float* x, float* y, long n) {
    if (threadIdx.x == 0) while (done < blockIdx.x) {}
    __syncthreads();
    for (long i = threadIdx.x; i < n; i += blockDim.x) {
        long at = blockIdx.x * n + i;
        y[at] = blockIdx.x == 0 ? x[at] : y[at - n] + x[at];
    }
    __syncthreads();
    __threadfence();
    if (threadIdx.x == 0) done = blockIdx.x + 1;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    reset<<<1, 1>>>();
    ordered<<<n, 64>>>((const float*)x, (float*)output, n);
}
"""

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


def outputs(bench: Bench, source: str, x: np.ndarray) -> list[np.ndarray]:
    """Of two calls in one process and one in another."""
    found, job = [], bench.job(x)
    for calls in (2, 1):
        with bench.device.open(bench.build(source), job, timeout_s=TIMEOUT_S) as session:
            for _ in range(calls):
                session.call(0xAB)
                found.append(bench.output(x))
    return found


def source(where: str, add: str, which: str) -> str:
    text = TOTALS.replace("ROUNDS", str(ROUNDS))
    return text.replace("WHERE", where).replace("ADD", add).replace("WHICH", which)


def test_updates_that_race_within_a_block_are_lost_in_the_same_way_each_time(bench: Bench) -> None:
    x = np.ones((64, 64), dtype=np.float32)
    first, *others = outputs(bench, source(BETWEEN_WARPS, ADD, "i / 64 % 8"), x)
    assert first.min() < 4 * ROUNDS
    assert all(np.array_equal(first, other) for other in others)


def test_updates_that_race_between_blocks_are_lost(bench: Bench) -> None:
    x = np.ones((64, 64), dtype=np.float32)
    only_blocks_race = "if (threadIdx.x < 64) " + ADD
    first = outputs(bench, source(BETWEEN_BLOCKS, only_blocks_race, "0"), x)[0]
    assert first.min() < 8 * ROUNDS


def test_atomic_updates_are_not(bench: Bench) -> None:
    x = np.ones((64, 64), dtype=np.float32)
    for output in outputs(bench, source(BETWEEN_BLOCKS, ADD_ATOMICALLY, "0"), x):
        np.testing.assert_array_equal(output, 8 * 4 * ROUNDS)


def test_blocks_may_wait_for_blocks_before_them(bench: Bench) -> None:
    x = np.random.default_rng(1).integers(0, 9, (24, 24)).astype(np.float32)
    for output in outputs(bench, SCAN, x):
        np.testing.assert_array_equal(output, x.cumsum(axis=0))


def test_blocks_that_draw_work_share_it_out_while_they_are_counted(tmp_path: Path) -> None:
    (tmp_path / "queue.cu").write_text(QUEUE)
    program = EmulatedProgram.build(tmp_path / "queue.cu")
    with (tmp_path / "printed").open("wb") as printed:
        assert program.run(timeout_s=TIMEOUT_S, streams=Streams(stdout=printed)).exit_code == 0
    assert int((tmp_path / "printed").read_text()) <= 6, "of 64 items for 16 blocks"
