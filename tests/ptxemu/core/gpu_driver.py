"""Runs PTX kernels on a GPU through the CUDA driver, as `ptx_machine` does on the emulated core.

After a kernel that fails nothing works any more in its process: launches run in processes of their own, and what is
left after such a kernel gets a new one. As a program (`python gpu_driver.py WORK FOUND`) this is such a process.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from ptx_machine import Launch

_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6
"""CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"""
_LOG_ROOM = 1 << 18
_NO_GPU = 3
"""Exit code of a process that finds none."""
_LAUNCH_S = 20
"""After which a launch counts as one that does not end."""
_START_S = 300
MOST_PROCESSES = 30
"""What has not run in so many is not tried: something is wrong with more than a few kernels."""


class NoGpu(RuntimeError):
    """No driver, or no GPU that it reaches."""


class DriverError(RuntimeError):
    """A call of the driver that failed, by its name and the driver's name of the error."""


class Refused(RuntimeError):
    """A text that the driver does not load, with its reasons."""


@dataclass(frozen=True)
class Ran:
    """One launch: its arrays in order, or why there are none.

    Attributes:
        arrays: what they hold after the launch; empty after a failure.
        failure: what the driver says of the text or of the launch; empty when it ended well.
    """

    arrays: list[np.ndarray] = field(default_factory=list)
    failure: str = ""


def require_gpu() -> None:
    """Raises NoGpu where there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        _process(Path(scratch), "", {}, {})


def run_on_gpu(head: str, kernels: Sequence[str], launches: Sequence[Launch]) -> list[Ran]:
    """Each launch with the kernel of its number; a kernel that is refused or fails costs no other launch its values.

    Raises:
        NoGpu: there is none.
    """
    found: dict[int, Ran] = {}
    for _ in range(MOST_PROCESSES):
        left = [number for number in range(len(kernels)) if number not in found]
        if not left:
            break
        with tempfile.TemporaryDirectory() as scratch:
            these = {number: kernels[number] for number in left}
            ended, code = _process(Path(scratch), head, these, {number: launches[number] for number in left})
        found |= ended
        unfinished = [number for number in left if number not in ended]
        if unfinished and code != 0:  # none that it has told of
            found[unfinished[0]] = Ran(failure=f"its process ended with code {code}; a launch has {_LAUNCH_S} s")
    return [found.get(number, Ran(failure="not tried: too many others failed")) for number in range(len(kernels))]


def _process(
    scratch: Path, head: str, kernels: Mapping[int, str], launches: Mapping[int, Launch]
) -> tuple[dict[int, Ran], int]:
    """Outcomes as far as one process came, and its exit code."""
    work, found = scratch / "work", scratch / "found"
    work.write_bytes(pickle.dumps((head, dict(kernels), {number: vars(one) for number, one in launches.items()})))
    found.touch()
    done = subprocess.run(
        [sys.executable, __file__, str(work), str(found)],
        env={**os.environ, "CUDA_MODULE_LOADING": "EAGER"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode == _NO_GPU:
        raise NoGpu(done.stderr.strip())
    outcomes: dict[int, Ran] = {}
    with found.open("rb") as stream:
        while True:
            try:
                number, arrays, failure = pickle.load(stream)
            except (EOFError, pickle.UnpicklingError):
                return outcomes, done.returncode
            outcomes[number] = Ran(arrays, failure)


class Gpu:
    """The first GPU, with one context."""

    def __init__(self) -> None:
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
            self._call("cuInit", 0)
        except (OSError, DriverError) as error:
            raise NoGpu(str(error)) from error
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    @property
    def lost(self) -> bool:
        """Whether a failure was one after which nothing works any more."""
        return self.driver.cuCtxSynchronize() != 0

    def load(self, head: str, kernels: Mapping[int, str]) -> tuple[dict[int, ctypes.c_void_p], dict[int, str]]:
        """The module of each kernel, and why others are refused: as the driver's messages say, or found by halves."""
        if not kernels:
            return {}, {}
        try:
            return dict.fromkeys(kernels, self._module(head + "\n".join(kernels.values()))), {}
        except Refused as error:
            log = str(error)
        why = named(head, kernels, log)
        if len(kernels) == 1:
            (number,) = kernels
            return {}, {number: why.get(number, log)}
        numbers = list(kernels)
        rest = [number for number in numbers if number not in why]
        middle = len(numbers) // 2
        modules: dict[int, ctypes.c_void_p] = {}
        for part in [rest] if why else [numbers[:middle], numbers[middle:]]:
            more, refused = self.load(head, {number: kernels[number] for number in part})
            modules |= more
            why = why | refused
        return modules, why

    def _module(self, ptx: str) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG_ROOM)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_ROOM)
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx.encode()), 2, options, values)
        except DriverError as error:
            raise Refused(f"{error}: {log.value.decode(errors='replace').strip()}") from error
        return module

    def launch(self, module: ctypes.c_void_p, one: Launch) -> list[np.ndarray]:
        """The arrays after it. Raises DriverError."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(one.kernel.encode()))
        self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, one.shared)
        values: list[ctypes._SimpleCData] = []
        placed: list[tuple[ctypes.c_uint64, np.ndarray]] = []
        for argument in one.arguments:
            if isinstance(argument, int):
                values.append(ctypes.c_uint(argument))
                continue
            pointer, host = ctypes.c_uint64(), np.ascontiguousarray(argument).copy()
            self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(host.nbytes))
            self._call("cuMemcpyHtoD_v2", pointer, host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(host.nbytes))
            placed.append((pointer, host))
            values.append(pointer)
        pointers = (ctypes.c_void_p * max(len(values), 1))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        self._call("cuLaunchKernel", function, *one.grid, *one.block, one.shared, None, pointers, None)
        self._call("cuCtxSynchronize")
        for pointer, host in placed:
            self._call("cuMemcpyDtoH_v2", host.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(host.nbytes))
            self._call("cuMemFree_v2", pointer)
        return [host for _, host in placed]

    def _call(self, name: str, *arguments: object) -> None:
        if code := getattr(self.driver, name)(*arguments):
            known = ctypes.c_char_p()
            self.driver.cuGetErrorName(code, ctypes.byref(known))
            raise DriverError(f"{name}: {(known.value or b'CUDA error').decode()} ({code})")


def named(head: str, kernels: Mapping[int, str], log: str) -> dict[int, str]:
    """Of the kernels in whose lines an assembler's messages find errors, what they say."""
    last, owner = head.count("\n"), {}
    for number, text in kernels.items():
        lines = text.count("\n") + 1
        owner |= dict.fromkeys(range(last + 1, last + lines + 1), number)
        last += lines
    said: dict[int, list[str]] = {}
    for line, message in re.findall(r"line (\d+);\s*(?:error|fatal)\s*:\s*(.*)", log):
        if (number := owner.get(int(line))) is not None:
            said.setdefault(number, []).append(message.strip())
    return {number: "does not assemble: " + "; ".join(messages) for number, messages in said.items()}


def _note(stream: BinaryIO, number: int, arrays: list[np.ndarray], failure: str = "") -> None:
    pickle.dump((number, arrays, failure), stream)
    stream.flush()


def main() -> int:
    """The process that runs what is left of some launches, up to the first after which nothing works any more."""
    work, found = map(Path, sys.argv[1:])
    head, kernels, launches = pickle.loads(work.read_bytes())
    faulthandler.dump_traceback_later(_START_S, exit=True)
    try:
        gpu = Gpu()
    except NoGpu as error:
        print(error, file=sys.stderr)
        return _NO_GPU
    modules, refused = gpu.load(head, kernels)
    with found.open("ab") as stream:
        for number, why in refused.items():
            _note(stream, number, [], why)
        for number, module in modules.items():
            faulthandler.dump_traceback_later(_LAUNCH_S, exit=True)
            try:
                arrays = gpu.launch(module, Launch(**launches[number]))
            except DriverError as error:
                _note(stream, number, [], str(error))
                if gpu.lost:
                    break
            else:
                _note(stream, number, arrays)
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.flush()
    os._exit(0)  # a lost context may keep the driver from tearing down


if __name__ == "__main__":
    sys.exit(main())
