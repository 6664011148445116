"""A second way to time PyTorch, which shares nothing with the package: prints the median of its calls in microseconds.

    python second_clock.py REFERENCE.py SIZE

The module is called as it is, in fp16. Before each call 256 MB are written, which leaves nothing of the tensors in L2,
and a kernel spins long enough for the host to launch the call behind it.
"""

import importlib.util
import statistics
import sys

import torch

CALLS, WARM = 60, 10
FLUSH_BYTES = 256 << 20
SPIN_CYCLES = 4_000_000  # two milliseconds


def main(path: str, size: str) -> None:
    spec = importlib.util.spec_from_file_location("reference", path)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    with torch.inference_mode(), torch.device("cuda"):
        module = reference.Model(*reference.get_init_inputs(size)).half().eval()
        inputs = [x.half() if x.is_floating_point() else x for x in reference.get_inputs(size)]
        flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for call in range(WARM + CALLS):
            flush.fill_(call)
            torch.cuda._sleep(SPIN_CYCLES)
            begin.record()
            module(*inputs)
            end.record()
            torch.cuda.synchronize()
            if call >= WARM:
                times.append(1e3 * begin.elapsed_time(end))
    print(f"{statistics.median(times):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
