"""Times PyTorch on one problem when that is first asked for, in a process of its own, and keeps the row."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from pathlib import Path

from kernelblaster.devices.cuda.probe import GpuInfo, detect_gpu
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import cache_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.runs.pytorch_times import TimesPlan, TimesPool, gpu_workers, time_pytorch


class PytorchGpuClock:
    """PyTorch on the GPU of this machine; safe for many threads, each of which waits for the GPU.

    Args:
        precision: of candidates; a problem that has its own is timed in that.
        workload: size that is timed.
        tell: told what takes time.
        gpu: that of this machine if None.
        folder: where rows are kept, by GPU, driver and PyTorch; in the cache if None.
        workers: makes the processes that measure.
    """

    def __init__(
        self,
        precision: Precision,
        workload: str,
        tell: Callable[[str], object],
        *,
        gpu: GpuInfo | None = None,
        folder: Path | None = None,
        workers: Callable[[int], TimesPool] = gpu_workers,
    ) -> None:
        self._precision = precision
        self._workload = workload
        self._tell = tell
        self._gpu = gpu
        self._folder = folder
        self._workers = workers

    def __call__(self, problem: Problem, modes: frozenset[TorchMode]) -> dict[TorchMode, ModeTime]:
        """The times of those modes that run. Raises DeviceError where there is no GPU."""
        gpu = self._gpu or detect_gpu()
        if gpu is None:
            return {}
        plan = TimesPlan([problem], [problem.precision_for(self._precision)], [self._workload], sorted(modes))
        rows = time_pytorch(plan, self._records(gpu), self._tell, gpu=gpu, workers=self._workers)
        return {mode: time for row in rows for mode, time in row.times.items() if mode in modes}

    def _records(self, gpu: GpuInfo) -> Path:
        known = "-".join((gpu.name, gpu.driver_version, importlib.metadata.version("torch")))
        folder = self._folder or cache_dir() / "pytorch-times"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / (re.sub(r"[^\w.+]+", "_", known) + ".jsonl")
