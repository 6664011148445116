"""Raw tensor files and the number formats behind them: bytes on disk to torch tensors and back.

Imports torch; whoever must start fast imports this module inside a function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.inputs.staging import Staging
from kernelblaster.problems.dtype import LAUNCHABLE, DType
from kernelblaster.problems.problem import Precision, TensorSpec

_LARGE = 1 << 22
_ON_HOST = 1 << 20
"""Elements of all tensors of a computation up to which the host is faster than to launch it operation by operation on a
GPU, where moreover each process waits for its turn among all that use it."""
_MOST_THREADS = 16
TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: getattr(torch, dtype.value) for dtype in LAUNCHABLE}


def storage_dtype(precision: Precision) -> torch.dtype:
    """Type that holds a problem's floating-point tensors, but for those that pin another."""
    return TORCH_DTYPES[precision.dtype]


def compute_device(elements: int | None = None) -> torch.device:
    """Where references and comparisons run: the GPU when torch sees one, but for `elements` that are few."""
    small = elements is not None and elements <= _ON_HOST
    return torch.device("cuda" if not small and torch.cuda.is_available() else "cpu")


@contextmanager
def borrowed_memory(elements: int | None = None) -> Iterator[torch.device]:
    """The compute device; its cached memory is given back, for the candidates' processes need it.

    Args:
        elements: of all tensors that are computed with, where that is known.

    Raises DeviceMemoryFull when the memory does not suffice.
    """
    device = compute_device(elements)
    try:
        yield device
    except RuntimeError as error:
        # Not only allocations fail: loading a kernel does, too, with another class and the same words.
        if "out of memory" not in str(error):
            raise
        raise DeviceMemoryFull(
            "the GPU's memory does not suffice to compute or compare the reference",
            hint="free GPU memory, or choose a smaller --size",
        ) from error
    finally:
        if device.type == "cuda":
            torch.cuda.empty_cache()


@contextmanager
def drawing_threads(elements: int) -> Iterator[None]:
    """Let torch draw a large tensor on several cores of the host, whatever OMP_NUM_THREADS says.

    Half of the cores that this process may use, 16 at most: the others compile. The caller holds `TORCH`.
    """
    before, wanted = torch.get_num_threads(), min(len(os.sched_getaffinity(0)) // 2, _MOST_THREADS)
    if elements < _LARGE or wanted <= before:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def write_tensor(path: Path, tensor: torch.Tensor) -> None:
    """Write a tensor's bytes, row-major, from any device, without a second copy on the host. Raises OSError."""
    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    with open(path, "wb", buffering=0) as file:
        if flat.device.type == "cpu":
            flat.numpy().tofile(file)
            return
        Staging(flat.numel()).write(file.fileno(), flat)


def read_tensor(path: Path, spec: TensorSpec) -> torch.Tensor:
    """Map a file as a flat tensor of `spec`'s type; pages are read when touched. The file must have `spec.bytes`."""
    if spec.elements == 0:
        return torch.empty(0, dtype=TORCH_DTYPES[spec.dtype])
    raw = np.memmap(path, dtype=np.uint8, mode="c", shape=(spec.bytes,))
    return torch.from_numpy(raw).view(TORCH_DTYPES[spec.dtype])


def load_tensor(path: Path, spec: TensorSpec, device: torch.device) -> torch.Tensor:
    """Read a file as a flat tensor of `spec`'s type on a device. The file must have `spec.bytes`. Raises OSError."""
    with stored_spans(path, spec, device) as span:
        return span(0, spec.elements)


@contextmanager
def stored_spans(path: Path, spec: TensorSpec, device: torch.device) -> Iterator[Callable[[int, int], torch.Tensor]]:
    """Lend a function that reads elements from a first up to a last one of a file, flat, onto a device.

    The file must have `spec.bytes`. Entering and reading raise OSError.
    """
    if device.type == "cpu" or spec.elements == 0:
        mapped = read_tensor(path, spec)
        yield lambda start, stop: mapped[start:stop].to(device)
        return
    dtype, staging = TORCH_DTYPES[spec.dtype], Staging(spec.bytes)
    with open(path, "rb", buffering=0) as file:

        def read(start: int, stop: int) -> torch.Tensor:
            flat = torch.empty((stop - start) * dtype.itemsize, dtype=torch.uint8, device=device)
            staging.read(file.fileno(), start * dtype.itemsize, flat)
            return flat.view(dtype)

        yield read


def spans(total: int, row: int, at_most: int) -> Iterator[tuple[int, int]]:
    """Cut `total` elements into spans of whole rows, each near `at_most` elements (one row at least)."""
    step = max(at_most // row, 1) * row
    for start in range(0, total, step):
        yield start, min(start + step, total)
