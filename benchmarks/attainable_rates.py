"""Measure what this GPU attains, and print its entry for `src/kernelblaster/devices/attainable_rates.json`.

    python benchmarks/attainable_rates.py

Copy rate: torch copies 2 GB. Tensor rates: torch's products of 8192 x 8192 normal values. Launch: one element is
filled. Medians of 50 calls between CUDA events, each behind 200 us of other work, so that no host time shows.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

import torch

CALLS = 50
HIDDEN_CYCLES = 400_000
"""Of waiting before each call: 200 us at 2 GHz."""
COPIED = 2 << 30
SIDE = 8192
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
    """FLOP/s of a large product."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    left, right = (torch.randn(SIDE, SIDE, device="cuda", dtype=kind) for _ in "ab")
    out = torch.empty_like(left)
    return 2 * SIDE**3 / (1e-6 * median_us(lambda: torch.mm(left, right, out=out)))


def main() -> None:
    """Measure and print."""
    source, target = (torch.empty(COPIED, dtype=torch.uint8, device="cuda") for _ in "ab")
    copy = 2 * COPIED / (1e-6 * median_us(lambda: target.copy_(source)))
    one = torch.empty(1, device="cuda")
    entry = {
        "key": torch.cuda.get_device_name().removeprefix("NVIDIA "),
        "copy_bandwidth": float(f"{copy:.4g}"),
        "launch_us": round(median_us(lambda: one.fill_(1.0)), 2),
        "flops": {name: float(f"{tensor_rate(*lap):.4g}") for name, lap in LAPS.items()},
        "source": f"measured by benchmarks/attainable_rates.py, torch {torch.__version__}",
    }
    print(json.dumps(entry))


if __name__ == "__main__":
    main()
