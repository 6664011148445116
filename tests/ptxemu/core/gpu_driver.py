"""Runs PTX text on a GPU through the CUDA driver, as `ptx_machine` does on the emulated core."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from ptx_machine import Launch

_MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"""


class NoGpu(RuntimeError):
    """No driver, or no GPU that it reaches."""


class Gpu:
    """The first GPU, with one context."""

    def __init__(self) -> None:
        try:
            self.driver = ctypes.CDLL("libcuda.so.1")
            self._call("cuInit", 0)
        except (OSError, RuntimeError) as error:
            raise NoGpu(str(error)) from error
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def run(self, ptx: str, launches: Sequence[Launch]) -> list[list[np.ndarray]]:
        """Each launch's arrays after it, in order.

        Raises:
            RuntimeError: the driver refuses the module or a launch, or a kernel fails.
        """
        module = ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        return [self._launch(module, one) for one in launches]

    def _launch(self, module: ctypes.c_void_p, one: Launch) -> list[np.ndarray]:
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
            raise RuntimeError(f"{name}: CUDA error {code}")
