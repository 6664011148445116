"""One launch in a process of its own: arrays go there in files, and come back when the kernel has ended well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxemu.errors import CoreFailure, InvalidInput
from ptxemu.kernels import process
from ptxemu.kernels.arguments import Argument
from ptxemu.kernels.arrays import HostArray, memory

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """What is launched.

    Attributes:
        kernel: mangled name.
        grid, block: extents.
        shared_bytes: dynamic shared memory of a block.
        cluster: blocks of a cluster along each axis; None leaves it to the kernel.
        cooperative: whether blocks may wait for each other.
    """

    kernel: str
    grid: Extents
    block: Extents
    shared_bytes: int = 0
    cluster: Extents | None = None
    cooperative: bool = False


@dataclass(frozen=True)
class Ended:
    """How the process ended.

    Attributes:
        error: of CUDA, by name; None when the kernel ended well.
        killed: whether its time was up, or a signal ended it.
        printed: what the kernel printed.
        messages: standard error.
    """

    error: str | None
    killed: bool
    printed: str
    messages: str


@dataclass(frozen=True)
class _MemoryRegion:
    """Memory of this process that becomes one allocation: an array, or several that overlap."""

    begin: int
    end: int

    @property
    def view(self) -> memoryview:
        return memory(self.begin, self.end - self.begin)


class LaunchProcess:
    """Starts processes for one module.

    Args:
        library: the core.
        scratch: folder for files of one launch.
        environment: what the core is told by its environment.
        timeout_s: wall time a launch may take.
    """

    def __init__(self, library: Path, scratch: Path, environment: Mapping[str, str], timeout_s: float) -> None:
        self._library = library
        self._scratch = scratch
        self._environment = environment
        self._timeout_s = timeout_s

    def run(self, launch: Launch, arguments: Sequence[Argument]) -> Ended:
        """Launch; afterwards arrays hold what the kernel has written, unless it has failed.

        Raises:
            InvalidInput: it has written to an array that is read-only; no array has changed then.
            CoreFailure: the process did not say how it ended.
        """
        arrays = [one for one in arguments if isinstance(one, HostArray)]
        regions = _regions(arrays)
        files = [self._scratch / f"region{k}" for k in range(len(regions))]
        for region, file in zip(regions, files, strict=True):
            file.write_bytes(region.view)
        job = {
            "library": str(self._library),
            "kernel": launch.kernel,
            "grid": launch.grid,
            "block": launch.block,
            "shared": launch.shared_bytes,
            "cluster": launch.cluster,
            "cooperative": launch.cooperative,
            "regions": [str(file) for file in files],
            "arguments": [_encoded(one, regions) for one in arguments],
        }
        ended = self._start(job)
        if ended.error is None and not ended.killed:
            _take_back(arrays, regions, files)
        return ended

    def _start(self, job: dict[str, Any]) -> Ended:
        told, result = self._scratch / "job.json", self._scratch / "result.json"
        told.write_text(json.dumps(job), encoding="utf-8")
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", process.__file__, str(told), str(result)],
            env={**os.environ, **self._environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            printed, messages = child.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            return Ended(None, True, "", f"it did not end in {self._timeout_s:g} seconds")
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.communicate()
        if child.returncode < 0:
            return Ended(None, True, printed, f"signal {-child.returncode} ended the emulator\n{messages}")
        if not result.exists():
            raise CoreFailure(
                f"a launch ended without a result: {messages.strip()[-500:]}", hint="delete the cache directory"
            )
        return Ended(json.loads(result.read_text(encoding="utf-8"))["error"], False, printed, messages)


def _regions(arrays: Sequence[HostArray]) -> list[_MemoryRegion]:
    """Arrays that share bytes become one region, so that a kernel sees them share."""
    merged: list[_MemoryRegion] = []
    for one in sorted(arrays, key=lambda array: array.address):
        if one.nbytes == 0:
            continue
        if merged and one.address < merged[-1].end:
            merged[-1] = _MemoryRegion(merged[-1].begin, max(merged[-1].end, one.end))
        else:
            merged.append(_MemoryRegion(one.address, one.end))
    return merged


def _encoded(argument: Argument, regions: Sequence[_MemoryRegion]) -> dict[str, Any]:
    if isinstance(argument, bytes):
        return {"value": argument.hex()}
    for position, region in enumerate(regions):
        if region.begin <= argument.address < region.end:
            return {"region": position, "offset": argument.address - region.begin}
    return {"value": bytes(8).hex()}  # an empty array has no address


def _take_back(arrays: Sequence[HostArray], regions: Sequence[_MemoryRegion], files: Sequence[Path]) -> None:
    """What the kernel has written, into the arrays. Raises InvalidInput."""
    after = [file.read_bytes() for file in files]
    changed = [(region, data) for region, data in zip(regions, after, strict=True) if region.view != memoryview(data)]
    for region, data in changed:
        for one in arrays:
            begin, end = one.address - region.begin, one.end - region.begin
            if one.writable or not 0 <= begin < end <= len(data):
                continue
            if region.view[begin:end] != data[begin:end]:
                raise InvalidInput("the kernel wrote to an array that is read-only", hint="pass a copy of it")
    for region, data in changed:
        region.view[:] = data
