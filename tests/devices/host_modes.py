"""How the candidate of host_candidate.cpp behaves, and sessions with it."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from kernelblaster.devices.base import Build, Job
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.sandbox.limits import Limits


class Mode(IntEnum):
    HONEST = 0
    MUTATES = 1
    HANGS = 2
    SEGFAULTS = 3
    EXITS_EARLY = 4
    CUDA_ERROR = 5
    ECC_ERROR = 6
    FLOODS = 7
    FORKS = 8
    EATS_MEMORY = 9
    WRITES_FILE = 10
    FORGES_REPLY = 11
    THROWS = 12
    SPEAKS = 13
    THREADS = 14
    OVERRUNS = 15
    REPLAYS = 16
    POSES_AS_DRIVER = 17
    SETS_LINES_ASIDE = 18
    READS_HARNESS = 19
    UNLOCKS_HARNESS = 20
    WIPES_HARNESS = 21
    JUMPS_BEHIND_ITSELF = 22
    INTERRUPTS_HARNESS = 23
    RECEIVES = 24
    SEEKS_KEY = 25
    THROWS_MORE = 26
    MAPS_OUTPUTS = 27
    UNWINDS_HARNESS = 28
    CANCELS_HARNESS = 29
    TELLS_ADDRESS = 30


LIMITS = Limits(memory_bytes=200 << 20, file_bytes=1 << 20, tasks=30, output_bytes=8 << 20)

MakeJob = Callable[..., Job]


def session(build: Build, job: Job, timeout_s: float = 10) -> ProcessSession:
    return ProcessSession(build, job, limits=LIMITS, timeout_s=timeout_s, flush_bytes=1 << 20)


def output_of(job: Job) -> np.ndarray:
    return np.fromfile(job.tensors[-1].path, dtype=np.float32)


def expected(job: Job) -> np.ndarray:
    return np.fromfile(job.tensors[0].path, dtype=np.float32) * 2 + 0.5
