"""Raw tensor files and the number formats behind them: bytes on disk to torch tensors and back.

Imports torch; whoever must start fast imports this module inside a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.problems.dtype import LAUNCHABLE, DType
from kernelblaster.problems.problem import Precision, TensorSpec

TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: getattr(torch, dtype.value) for dtype in LAUNCHABLE}


def storage_dtype(precision: Precision) -> torch.dtype:
    """Type that holds a problem's floating-point tensors, but for those that pin another."""
    return TORCH_DTYPES[precision.dtype]


def compute_device() -> torch.device:
    """Where references and comparisons run: the GPU when torch sees one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextmanager
def borrowed_memory() -> Iterator[torch.device]:
    """The compute device; its cached memory is given back, for the candidates' processes need it.

    Raises DeviceMemoryFull when the memory does not suffice.
    """
    device = compute_device()
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


def write_tensor(path: Path, tensor: torch.Tensor) -> None:
    """Write a tensor's bytes, row-major. Raises OSError."""
    tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tofile(path)


def read_tensor(path: Path, spec: TensorSpec) -> torch.Tensor:
    """Map a file as a flat tensor of `spec`'s type; pages are read when touched. The file must have `spec.bytes`."""
    if spec.elements == 0:
        return torch.empty(0, dtype=TORCH_DTYPES[spec.dtype])
    raw = np.memmap(path, dtype=np.uint8, mode="c", shape=(spec.bytes,))
    return torch.from_numpy(raw).view(TORCH_DTYPES[spec.dtype])


def spans(total: int, row: int, at_most: int) -> Iterator[tuple[int, int]]:
    """Cut `total` elements into spans of whole rows, each near `at_most` elements (one row at least)."""
    step = max(at_most // row, 1) * row
    for start in range(0, total, step):
        yield start, min(start + step, total)
