"""Runs PTX text on the emulated core without a compiler: one process per batch of launches.

As a program (`python ptx_machine.py LIBRARY BATCH RESULTS`) it is that process: it loads the stand-in runtime, copies
arrays in, launches, copies them back.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

FAILED = 77
"""Exit code of an isolated launch that CUDA refused or ended with an error."""
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"


@dataclass
class Launch:
    """One kernel launch; arrays are passed as pointers and come back, integers as 32-bit values."""

    kernel: str
    arguments: list[np.ndarray | int]
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    shared: int = 0


@dataclass
class Outcome:
    """Error code, the text on standard error, and each launch's arrays after it (those before an error)."""

    error: int
    stderr: str
    arrays: list[list[np.ndarray]] = field(default_factory=list)


def run(
    library: Path, module: Path, launches: list[Launch], *, timeout_s: float = 60, environment: dict | None = None
) -> Outcome:
    """Run the launches in order in a process of their own; stops at the first error."""
    with tempfile.TemporaryDirectory() as scratch:
        batch, results = Path(scratch, "batch"), Path(scratch, "results")
        batch.write_bytes(pickle.dumps([vars(one) for one in launches]))
        done = subprocess.run(
            [sys.executable, __file__, str(library), str(batch), str(results)],
            env={**os.environ, "PTXEMU_MODULE": str(module), "PTXEMU_THREADS": "2", **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode < 0 or not results.exists():
            return Outcome(done.returncode or 999, done.stderr)
        error, arrays = pickle.loads(results.read_bytes())
        return Outcome(error, done.stderr, arrays)


def run_isolated(library: Path, modules: list[Path], launch: Launch, *, timeout_s: float = 120) -> list[int]:
    """The launch on each module, in a process each: 0, `FAILED`, the runtime's own exit code, or minus a signal."""
    with tempfile.TemporaryDirectory() as scratch:
        batch, results = Path(scratch, "batch"), Path(scratch, "results")
        batch.write_bytes(pickle.dumps([vars(launch), [str(one) for one in modules]]))
        subprocess.run(
            [sys.executable, __file__, str(library), str(batch), str(results), "isolated"],
            env={**os.environ, "PTXEMU_THREADS": "1", "PTXEMU_LIMIT": "2000000", "PTXEMU_MEMORY": str(1 << 28)},
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=True,
        )
        return pickle.loads(results.read_bytes())


class _Extents(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class _Device:
    def __init__(self, library: str) -> None:
        self.runtime = ctypes.CDLL(library)
        self.runtime.cudaLaunchKernel.argtypes = [
            ctypes.c_void_p, _Extents, _Extents, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p,
        ]  # fmt: skip
        self.stubs: dict[str, ctypes.Array] = {}
        open_module = self.runtime.__getattr__("__cudaRegisterFatBinary")
        open_module.restype = ctypes.c_void_p
        self.module = ctypes.c_void_p(open_module(None))

    def stub(self, kernel: str) -> int:
        """A host address that stands for the kernel, as nvcc's stub function does."""
        if kernel not in self.stubs:
            self.stubs[kernel] = ctypes.create_string_buffer(8)
            address = ctypes.c_void_p(ctypes.addressof(self.stubs[kernel]))
            nothing = [None] * 5
            self.runtime.__getattr__("__cudaRegisterFunction")(
                self.module, address, None, kernel.encode(), ctypes.c_int(-1), *nothing
            )
        return ctypes.addressof(self.stubs[kernel])

    def launch(self, one: Launch) -> tuple[int, list[np.ndarray]]:
        values: list[ctypes._SimpleCData] = []
        placed: list[tuple[ctypes.c_void_p, np.ndarray]] = []
        for argument in one.arguments:
            if isinstance(argument, int):
                values.append(ctypes.c_uint(argument))
                continue
            pointer = ctypes.c_void_p()
            self.check(self.runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(argument.nbytes)))
            host = np.ascontiguousarray(argument).copy()
            self.check(self.copy(pointer, host.ctypes.data, host.nbytes, 1))
            placed.append((pointer, host))
            values.append(pointer)
        pointers = (ctypes.c_void_p * max(len(values), 1))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        code = self.runtime.cudaLaunchKernel(
            self.stub(one.kernel), _Extents(*one.grid), _Extents(*one.block), pointers, one.shared, None
        )
        if code == 0:
            for pointer, host in placed:
                self.check(self.copy(host.ctypes.data, pointer, host.nbytes, 2))
                self.check(self.runtime.cudaFree(pointer))
        return code, [host for _, host in placed]

    def copy(self, to: object, source: object, size: int, kind: int) -> int:
        address = [one if isinstance(one, ctypes.c_void_p) else ctypes.c_void_p(one) for one in (to, source)]
        return self.runtime.cudaMemcpy(*address, ctypes.c_size_t(size), ctypes.c_int(kind))

    @staticmethod
    def check(code: int) -> None:
        if code:
            raise RuntimeError(f"CUDA error {code}")


def isolated(library: str, batch: Path) -> list[int]:
    """One forked process for each module."""
    launch, modules = pickle.loads(batch.read_bytes())
    codes = []
    for module in modules:
        child = os.fork()
        if child == 0:
            os.environ["PTXEMU_MODULE"] = module
            code, _ = _Device(library).launch(Launch(**launch))
            os._exit(FAILED if code else 0)
        status = os.waitpid(child, 0)[1]
        codes.append(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    return codes


def main() -> None:
    """The process that runs one batch."""
    library, batch, results, *mode = sys.argv[1:]
    if mode:
        Path(results).write_bytes(pickle.dumps(isolated(library, Path(batch))))
        return
    device = _Device(library)
    code, arrays = 0, []
    for one in pickle.loads(Path(batch).read_bytes()):
        code, after = device.launch(Launch(**one))
        if code:
            break
        arrays.append(after)
    Path(results).write_bytes(pickle.dumps((code, arrays)))


if __name__ == "__main__":
    main()
