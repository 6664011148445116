"""The process in which a kernel is launched: `python process.py JOB RESULT`.

It loads the stand-in CUDA runtime, copies regions of memory from files to the device, launches, and copies them back.
A kernel that fails breaks its process' device for good, as on a GPU, hence a process for each launch. Started without
site packages: imports nothing but the standard library, and nothing of this package.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from pathlib import Path
from typing import Any

_TO_DEVICE, _TO_HOST = 1, 2
_MAX_DYNAMIC_SHARED = 8
"""cudaFuncAttributeMaxDynamicSharedMemorySize"""
_CLUSTER, _COOPERATIVE = 4, 2
"""cudaLaunchAttributeClusterDimension, cudaLaunchAttributeCooperative"""
_SHARED_WITHOUT_ASKING = 48 << 10


class CudaError(Exception):
    """A call of the runtime has failed; its one argument is the error's name."""


class _Extents(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _LaunchAttribute(ctypes.Structure):
    """cudaLaunchAttribute: its value is a union of 64 bytes, of which three words are used."""

    _fields_ = (("kind", ctypes.c_uint), ("padding", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class _Configuration(ctypes.Structure):
    """cudaLaunchConfig_t"""

    _fields_ = (
        ("grid", _Extents),
        ("block", _Extents),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class ModuleRuntime:
    """The stand-in runtime, with the kernels of its module."""

    def __init__(self, library: str) -> None:
        self._runtime = ctypes.CDLL(library)
        self._runtime.cudaGetErrorName.restype = ctypes.c_char_p

    def call(self, function: str, *arguments: object) -> None:
        """One function of the runtime. Raises CudaError."""
        code = getattr(self._runtime, function)(*arguments)
        if code:
            raise CudaError(self._runtime.cudaGetErrorName(code).decode())

    def upload(self, memory: mmap.mmap) -> int:
        """Address of a copy on the device."""
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t(len(memory))
        self.call("cudaMalloc", ctypes.byref(pointer), size)
        self.call("cudaMemcpy", pointer, _address(memory), size, _TO_DEVICE)
        return pointer.value or 0

    def download(self, memory: mmap.mmap, address: int) -> None:
        """The device's bytes into a file."""
        size = ctypes.c_size_t(len(memory))
        self.call("cudaMemcpy", _address(memory), ctypes.c_void_p(address), size, _TO_HOST)

    def launch(self, job: dict[str, Any], values: list[bytes]) -> None:
        """The kernel of a job. Raises CudaError when it is refused or fails."""
        # A kernel is known by the address of its host stub, of which any will do.
        stub = ctypes.create_string_buffer(1)
        open_module = self._runtime.__getattr__("__cudaRegisterFatBinary")
        open_module.restype = ctypes.c_void_p
        module = ctypes.c_void_p(open_module(None))
        register = self._runtime.__getattr__("__cudaRegisterFunction")
        register(module, stub, None, job["kernel"].encode(), ctypes.c_int(-1), *[None] * 5)
        if job["shared"] > _SHARED_WITHOUT_ASKING:
            self.call("cudaFuncSetAttribute", stub, _MAX_DYNAMIC_SHARED, ctypes.c_int(job["shared"]))
        attributes = (_LaunchAttribute * 2)(
            _LaunchAttribute(_COOPERATIVE, 0, (ctypes.c_uint * 16)(job["cooperative"])),
            _LaunchAttribute(_CLUSTER, 0, (ctypes.c_uint * 16)(*(job["cluster"] or ()))),
        )
        grid, block = _Extents(*job["grid"]), _Extents(*job["block"])
        configuration = _Configuration(grid, block, job["shared"], None, attributes, 2 if job["cluster"] else 1)
        kept = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * max(len(kept), 1))(*(ctypes.addressof(one) for one in kept))
        self.call("cudaLaunchKernelExC", ctypes.byref(configuration), stub, pointers)
        self.call("cudaDeviceSynchronize")


def run(job: dict[str, Any]) -> None:
    """Launch once; what kernels write is in the files of the regions afterwards. Raises CudaError."""
    device = ModuleRuntime(job["library"])
    regions = [_mapped(Path(one)) for one in job["regions"]]
    placed = [device.upload(one) for one in regions]
    values = [
        bytes.fromhex(one["value"])
        if "value" in one
        else (placed[one["region"]] + one["offset"]).to_bytes(8, sys.byteorder)
        for one in job["arguments"]
    ]
    device.launch(job, values)
    for memory, address in zip(regions, placed, strict=True):
        device.download(memory, address)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def _address(memory: mmap.mmap) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))


def main() -> None:
    """The command."""
    job, result = map(Path, sys.argv[1:])
    try:
        run(json.loads(job.read_text(encoding="utf-8")))
        error = None
    except CudaError as failed:
        error = str(failed)
    result.write_text(json.dumps({"error": error}), encoding="utf-8")


if __name__ == "__main__":
    main()
