"""Clock and temperature of a GPU through NVML. Reads only: clocks are never set."""

from __future__ import annotations

import threading

import pynvml

from kernelblaster.devices.facts import GpuReading


class Monitor:
    """Reads one GPU. Safe among threads; a driver that refuses is not asked again.

    Args:
        uuid: of the GPU, as NVML names it.
    """

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._lock = threading.Lock()
        self._handle: object | None = None
        self._refused = False

    def read(self) -> GpuReading | None:
        """SM clock and temperature now; None where the driver does not tell."""
        with self._lock:
            if self._refused:
                return None
            try:
                if self._handle is None:
                    pynvml.nvmlInit()
                    self._handle = pynvml.nvmlDeviceGetHandleByUUID(self._uuid)
                return GpuReading(
                    sm_mhz=float(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM)),
                    temperature=float(pynvml.nvmlDeviceGetTemperature(self._handle, pynvml.NVML_TEMPERATURE_GPU)),
                )
            except pynvml.NVMLError:
                self._refused = True
                return None
