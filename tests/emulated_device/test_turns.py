"""The order in which warps and blocks take turns: what nothing orders shows, what is ordered does not care."""

from __future__ import annotations

import numpy as np
import pytest
from emulated_bench import TIMEOUT_S, Bench, needs_tools

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


SWAP = """
__device__ void sync() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ const float* neighbours(const float* mine) {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const float* theirs;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(rank ^ 1));
    return theirs;
}
__global__ void __cluster_dims__(2, 1, 1) swap(float* y, const float* x, long n) {
    __shared__ float mine[256];
    long i = blockIdx.x * 256l + threadIdx.x;
    sync();
    mine[threadIdx.x] = i < n * n ? x[i] : 0;
    BARRIER;
    const float theirs = neighbours(mine)[threadIdx.x];
    sync();
    if (i < n * n) y[i] = theirs;
}
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    swap<<<(n * n + 511) / 512 * 2, 256>>>((float*)output, (const float*)x, n);
}
"""


def swapped(bench: Bench, barrier: str) -> bool:
    """Whether neighbouring blocks got each other's values in both calls, while warps and blocks take turns."""
    x = np.random.default_rng(2).normal(size=(64, 64)).astype(np.float32)
    wanted = x.reshape(-1, 2, 256)[:, ::-1].reshape(x.shape)
    build = bench.build(SWAP.replace("BARRIER", barrier))
    with bench.device.open(build, bench.job(x), timeout_s=TIMEOUT_S) as session:
        outputs = []
        for _ in range(2):
            session.call(0xAB)
            outputs.append(bench.output(x))
    return all(np.array_equal(one, wanted) for one in outputs)


def test_a_missing_barrier_shows_while_blocks_take_turns(bench: Bench) -> None:
    assert swapped(bench, "sync()")
    assert not swapped(bench, "")
