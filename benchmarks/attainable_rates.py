"""Measure what this GPU attains, and print its entry for `src/kernelblaster/devices/attainable_rates.json`.

    python benchmarks/attainable_rates.py

Copy rate: torch copies 2 GB. Read rate: torch.compile sums the squares of 4 GB. Tensor rates: torch's products of
normal values, square ones of several sides, divided by what the waves of their tiles leave (`attainable.fill`); the
fastest counts, for large ones lower the clock. Launch: one element is filled. Step: one of 200 products of 8 x 256 that
wait for each other, in a CUDA graph; a kernel that stays on the GPU may be faster. Medians of 50 calls between CUDA
events, each behind 200 us of other work, so that no host time shows. The rates have to be at least those at which
PyTorch was timed on whole problems (data/baselines): the tests say when they are not.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

import torch

from kernelblaster.evaluation.attainable import fill
from kernelblaster.evaluation.operations import Operation

CALLS = 50
HIDDEN_CYCLES = 400_000
"""Of waiting before each call: 200 us at 2 GHz."""
COPIED = 2 << 30
READ = 4 << 30
SIDES = (2048, 4096, 8192)
STEPS, BATCH, WIDTH = 200, 8, 256
LAPS = {"fp32": (torch.float32, False), "tf32": (torch.float32, True), "fp16": (torch.float16, False)}
LAPS |= {"bf16": (torch.bfloat16, False)}


def median_us(call: Callable[[], object]) -> float:
    """Median device time of a call in microseconds."""
    times = []
    for _ in range(CALLS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(HIDDEN_CYCLES)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times[5:])


def tensor_rate(kind: torch.dtype, tf32: bool) -> float:
    """FLOP/s of the fastest square product."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return max(_product_rate(side, kind) for side in SIDES)


def _product_rate(side: int, kind: torch.dtype) -> float:
    left, right = (torch.randn(side, side, device="cuda", dtype=kind) for _ in "ab")
    out = torch.empty_like(left)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    seconds = 1e-6 * median_us(lambda: torch.mm(left, right, out=out))
    return 2 * side**3 / seconds / fill(Operation(2.0 * side**3, side, side), sms)


def read_rate() -> float:
    """Bytes per second of a kernel that reads and writes nothing."""
    values = torch.ones(READ // 4, device="cuda")
    squares = torch.compile(lambda x: (x * x).sum())
    squares(values)
    return READ / (1e-6 * median_us(lambda: squares(values)))


def step_us() -> float:
    """Microseconds of a small product that waits for the one before."""
    kind = torch.float16
    weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=kind) / WIDTH**0.5
    states = [torch.randn(BATCH, WIDTH, device="cuda", dtype=kind) for _ in range(2)]

    def chain() -> None:
        for step in range(STEPS):
            torch.mm(states[step % 2], weight, out=states[1 - step % 2])

    chain()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    return median_us(graph.replay) / STEPS


def main() -> None:
    """Measure and print."""
    source, target = (torch.empty(COPIED, dtype=torch.uint8, device="cuda") for _ in "ab")
    copy = 2 * COPIED / (1e-6 * median_us(lambda: target.copy_(source)))
    one = torch.empty(1, device="cuda")
    entry = {
        "key": torch.cuda.get_device_name().removeprefix("NVIDIA "),
        "copy_bandwidth": float(f"{copy:.4g}"),
        "read_bandwidth": float(f"{read_rate():.4g}"),
        "launch_us": round(median_us(lambda: one.fill_(1.0)), 2),
        "step_us": round(step_us(), 2),
        "flops": {name: float(f"{tensor_rate(*lap):.4g}") for name, lap in LAPS.items()},
        "source": f"measured by benchmarks/attainable_rates.py, torch {torch.__version__}",
    }
    print(json.dumps(entry))


if __name__ == "__main__":
    main()
