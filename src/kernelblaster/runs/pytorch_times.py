"""Times PyTorch on many problems in several processes, and resumes where it stopped.

Processes compile in parallel; only one at a time holds the GPU. Each row is one line of a JSONL file
(`evaluation.timing.pytorch_times`), written as soon as it is measured. Inductor's caches are kept between calls.
"""

from __future__ import annotations

import importlib.metadata
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.errors import DeviceError, KernelBlasterError
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, TimesKey, read_times
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import cache_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest
from kernelblaster.problems.tags import Tag
from kernelblaster.runs.pytorch_measurement import TimesItem, TorchGpu, TorchMemoryFull, measure_times
from kernelblaster.runs.worker_pool import Pool, WorkerLost, WorkerPool, run_all
from kernelblaster.storage.jsonl import append_line, cut_torn_line

if TYPE_CHECKING:
    from kernelblaster.devices.cuda.probe import GpuInfo

LIMIT_S = 240.0
"""Of one problem in one precision at one size, compilation included."""
AUTOTUNED = frozenset(
    {Tag.MATMUL, Tag.CONV, Tag.CONV_TRANSPOSE, Tag.DEPTHWISE, Tag.ATTENTION, Tag.RECURRENT, Tag.NETWORK}
)
"""Operations that hold products or convolutions, for which max-autotune has kernels to choose among."""
_GUESSED_S = {1: 3.0, 2: 6.0, 3: 20.0}
"""What a problem of a level takes, roughly; the order alone rests on it."""


@dataclass(frozen=True)
class TimesPlan:
    """What is timed.

    Attributes:
        problems: in any order; the cheapest come first.
        precisions, workloads: each problem in each precision at each of these sizes that it declares.
        modes: of PyTorch; max-autotune is left out where it has nothing to choose (`AUTOTUNED`).
        seconds: of sampling per row, all modes together; a few samples are taken however long they take.
        jobs: processes that compile at once.
        minutes: after this no further row is begun; None for no limit.
        again: time also what has a row.
    """

    problems: Sequence[Problem]
    precisions: Sequence[Precision]
    workloads: Sequence[str]
    modes: Sequence[TorchMode]
    seconds: float = 0.5
    jobs: int = 1
    minutes: float | None = None
    again: bool = False


@dataclass(frozen=True)
class Failed:
    """Why a row could not be measured. `out_of_memory`: perhaps only because other processes held memory."""

    reason: str
    out_of_memory: bool = False


TimesPool = Pool[TimesItem, PytorchTimes | Failed]


def measure_item(item: TimesItem) -> PytorchTimes | Failed:
    """One row, on the GPU of this machine; called in a process of its own."""
    cache = cache_dir() / "inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    os.environ.setdefault("TRITON_CACHE_DIR", str(cache / "triton"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(item.compile_threads))
    device = TorchGpu.of(_gpu())
    try:
        return measure_times(item, device)
    except TorchMemoryFull as error:
        return Failed(str(error), out_of_memory=True)
    except KernelBlasterError as error:
        return Failed(error.message)
    finally:
        device.settle()


def gpu_workers(jobs: int) -> TimesPool:
    """Processes that measure on the GPU of this machine."""
    return WorkerPool(measure_item, jobs, LIMIT_S)


def time_pytorch(
    plan: TimesPlan,
    records: Path,
    tell: Callable[[str], object],
    *,
    gpu: GpuInfo | None = None,
    workers: Callable[[int], TimesPool] = gpu_workers,
) -> Iterator[PytorchTimes]:
    """Time what has no row in `records` yet, append each row there, and yield all of the plan's, old and new.

    Args:
        plan: what is timed.
        records: JSON lines; its directory is made.
        tell: told what takes time.
        gpu: that the workers work on; that of this machine if None.
        workers: makes a pool of that many workers.

    Raises:
        DeviceError: there is no GPU.
        MachineError: `records` is damaged.
    """
    gpu = gpu or _gpu()
    cut_torn_line(records)
    known = read_times([records] if records.exists() else [])
    items: list[TimesItem] = []
    for item in _items(plan, known):
        row = known.get(item.key(gpu.name))
        fresh = row if row is not None and row.digest == item.digest else None
        settled = {*fresh.times, *fresh.failures} if fresh and not plan.again else set[TorchMode]()
        left = tuple(mode for mode in item.modes if mode not in settled)
        if left:
            items.append(replace(item, modes=left))
        elif fresh:
            yield fresh
    for row in _timed(items, plan, gpu, tell, workers):
        append_line(records, row.model_dump_json().encode())
        before = known.get(row.key)
        known[row.key] = row if before is None else before.joined(row)
        yield known[row.key]


def wanted_rows(plan: TimesPlan) -> int:
    """How many rows a plan asks for: problems have the sizes that they declare."""
    sizes = sum(w in p.workloads for p in plan.problems if not p.weakly_verified for w in plan.workloads)
    return len(plan.precisions) * sizes


def _gpu() -> GpuInfo:
    from kernelblaster.devices.cuda.probe import detect_gpu

    gpu = detect_gpu()
    if gpu is None:
        raise DeviceError("no NVIDIA GPU was found", hint="use a machine that has one: PyTorch is timed there only")
    return gpu


def _items(plan: TimesPlan, known: Mapping[TimesKey, PytorchTimes]) -> Iterator[TimesItem]:
    """All of a plan: size by size, precision by precision, the cheapest problem first."""
    took = {(row.problem, row.workload): row.seconds for row in known.values() if row.times}

    def cost(problem: Problem, workload: str) -> float:
        guess = _GUESSED_S.get(problem.id.level, 10.0) + problem.reference_path.stat().st_size / 2000
        return took.get((str(problem.id), workload), guess)

    for workload in plan.workloads:
        declared = [p for p in plan.problems if workload in p.workloads and not p.weakly_verified]
        ordered = sorted(declared, key=lambda problem: cost(problem, workload))
        for precision in plan.precisions:
            for problem in ordered:
                modes = tuple(mode for mode in plan.modes if mode is not TorchMode.MAX_AUTOTUNE or _autotuned(problem))
                digest = reference_digest(problem)
                yield TimesItem(problem, precision, workload, modes, digest, plan.seconds, _threads(plan))


def _autotuned(problem: Problem) -> bool:
    return not problem.tags or not AUTOTUNED.isdisjoint(problem.tags)


def _threads(plan: TimesPlan) -> int:
    return max(1, (os.cpu_count() or 1) // plan.jobs)


def _timed(
    items: Sequence[TimesItem],
    plan: TimesPlan,
    gpu: GpuInfo,
    tell: Callable[[str], object],
    workers: Callable[[int], TimesPool],
) -> Iterator[PytorchTimes]:
    """The row of each item, until time is up."""
    results = run_all(
        items,
        workers,
        jobs=plan.jobs,
        minutes=plan.minutes,
        again_alone=lambda found: isinstance(found, Failed) and found.out_of_memory,
    )
    for done, (item, found) in enumerate(results, 1):
        tell(f"{item.problem.id} {item.precision} {item.workload} ({done} of {len(items)})")
        yield found if isinstance(found, PytorchTimes) else _without_times(item, gpu, found)


def _without_times(item: TimesItem, gpu: GpuInfo, failed: Failed | WorkerLost) -> PytorchTimes:
    """A row without times, which keeps the next call from trying the item again."""
    return PytorchTimes(
        problem=str(item.problem.id),
        name=item.problem.name,
        precision=item.precision,
        workload=item.workload,
        digest=item.digest,
        gpu=gpu.name,
        driver=gpu.driver_version,
        torch=importlib.metadata.version("torch"),
        settings=None,
        cover_us=0.0,
        conditions=None,
        floor_us=None,
        times={},
        failures=dict.fromkeys(item.modes, failed.reason),
        seconds=0.0,
        at=time.time(),
    )
