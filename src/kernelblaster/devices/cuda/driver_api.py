"""The few questions that go to the CUDA driver itself: which GPU a CUDA program gets, and its attributes.

The driver API needs no context for these, and so takes no memory of the GPU. It numbers GPUs as CUDA programs see them
(CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER); NVML numbers all of them, in another order. The UUID leads from one to the
other.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Sequence

from kernelblaster.errors import DeviceError

_HINT = "see `nvidia-smi` and CUDA_VISIBLE_DEVICES; reload the driver"


class DriverDevice:
    """The first GPU that a CUDA program started by this process gets.

    Raises:
        DeviceError: no driver, or it shows no GPU.
    """

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DeviceError("libcuda.so.1 cannot be loaded", hint="install the NVIDIA driver") from error
        self._device = ctypes.c_int()
        if self._cuda.cuInit(0) != 0 or self._cuda.cuDeviceGet(ctypes.byref(self._device), 0) != 0:
            raise DeviceError("the CUDA driver shows no GPU", hint=_HINT)

    def uuid(self) -> str:
        """As NVML names it, `GPU-...`. Raises DeviceError."""
        raw = (ctypes.c_ubyte * 16)()
        if self._cuda.cuDeviceGetUuid(ctypes.byref(raw), self._device) != 0:
            raise DeviceError("the CUDA driver does not tell the GPU's UUID", hint=_HINT)
        return f"GPU-{uuid.UUID(bytes=bytes(raw))}"

    def attributes(self, wanted: Sequence[int]) -> list[int]:
        """Values of `CUdevice_attribute`s. Raises DeviceError."""
        found, value = [], ctypes.c_int()
        for attribute in wanted:
            if self._cuda.cuDeviceGetAttribute(ctypes.byref(value), int(attribute), self._device) != 0:
                raise DeviceError(
                    f"the CUDA driver does not state attribute {attribute}", hint="update the NVIDIA driver"
                )
            found.append(value.value)
        return found
