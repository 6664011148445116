"""Times PyTorch on many problems in several processes, and resumes where it stopped.

Some rows at a time: all cores compile them, into Inductor's caches, which are kept between calls; then few processes
trace them again and sample, one at a time, while two that take long may compile on, so that hardly anything takes the
host from what is timed. Each row is one line of a JSONL file (`evaluation.timing.pytorch_times`), written as soon as it
is measured.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.errors import DeviceError, KernelBlasterError
from kernelblaster.evaluation.timing.compile_ahead import AHEAD
from kernelblaster.evaluation.timing.pytorch_times import (
    PytorchTimes,
    TimesAgain,
    TimesKey,
    describes,
    read_times,
)
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.paths import cache_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import size_digest
from kernelblaster.runs.compile_queue import CompileQueue
from kernelblaster.runs.pytorch_measurement import TimesItem, TorchMemoryFull, compile_modes, measure_times
from kernelblaster.runs.torch_device import TorchGpu
from kernelblaster.runs.worker_pool import Pool, WorkerLost, WorkerPool
from kernelblaster.storage.jsonl import append_line, cut_torn_line

if TYPE_CHECKING:
    from kernelblaster.devices.cuda.probe import GpuInfo

LIMIT_S = 480.0
"""Of one problem in one precision at one size, compilation and waiting for the GPU included."""
COMPILE_LIMIT_S = 1800.0
"""Of what is compiled ahead: max-autotune of level3/016 in fp32 takes 1,300 s on 16 cores beside six other networks."""
SAMPLERS = 3
"""Processes that trace and sample: one holds the GPU, the others have the next rows ready."""
_AT_ONCE = 2
"""Rows per process that are compiled before they are sampled."""
STRAGGLERS = 2
"""Processes that may still compile while others' rows are sampled."""
_GUESSED_S = {1: 3.0, 2: 6.0, 3: 20.0}
"""What a problem of a level takes, roughly; the order alone rests on it."""


@dataclass(frozen=True)
class TimesPlan:
    """What is timed.

    Attributes:
        problems: in any order; the cheapest come first.
        precisions, workloads: each problem in each precision at each of these sizes that it declares.
        modes: of PyTorch.
        seconds: of sampling per row, all modes together; a few samples are taken however long they take.
        jobs: processes that compile at once.
        minutes: after this no further row is begun; None for no limit.
        again: what is timed although it has a row; None: nothing.
    """

    problems: Sequence[Problem]
    precisions: Sequence[Precision]
    workloads: Sequence[str]
    modes: Sequence[TorchMode]
    seconds: float = 0.5
    jobs: int = 1
    minutes: float | None = None
    again: TimesAgain | None = None


@dataclass(frozen=True)
class Failed:
    """Why a row could not be measured. `out_of_memory`: perhaps only because other processes held memory."""

    reason: str
    out_of_memory: bool = False


TimesPool = Pool[TimesItem, PytorchTimes | Failed]
CompilePool = Pool[TimesItem, str]


def compile_item(item: TimesItem) -> str:
    """Compile what one row needs; why it could not be. Called in a process of its own."""
    device = _prepared(item)
    try:
        compile_modes(item, device)
    except (TorchMemoryFull, KernelBlasterError) as error:
        return str(error)
    finally:
        device.settle()
    return ""


def gpu_compilers(jobs: int) -> CompilePool:
    """Processes that compile for the GPU of this machine."""
    return WorkerPool(compile_item, jobs, COMPILE_LIMIT_S)


def _prepared(item: TimesItem) -> TorchGpu:
    """The GPU of this machine, and where this process' compiler keeps what it makes."""
    cache = cache_dir() / "inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    os.environ.setdefault("TRITON_CACHE_DIR", str(cache / "triton"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(item.compile_threads))
    return TorchGpu.of(_gpu())


def measure_item(item: TimesItem) -> PytorchTimes | Failed:
    """One row, on the GPU of this machine; called in a process of its own."""
    device = _prepared(item)
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
    compilers: Callable[[int], CompilePool] = gpu_compilers,
) -> Iterator[PytorchTimes]:
    """Time what has no row in `records` yet, append each row there, and yield all of the plan's, old and new.

    Args:
        plan: what is timed.
        records: JSON lines; its directory is made.
        tell: told what takes time, from several threads.
        gpu: that the workers work on; that of this machine if None.
        workers, compilers: make pools of that many processes, which sample and which compile.

    Raises:
        DeviceError: there is no GPU.
        MachineError: `records` is damaged.
    """
    gpu = gpu or _gpu()
    known = read_times([records] if records.exists() else [])
    cut_torn_line(records)
    items: list[TimesItem] = []
    for item in _items(plan, known):
        row = known.get(item.key(gpu.name))
        fresh = row if row is not None and describes(row, item.problem) else None
        settled = fresh.settled(plan.again) if fresh else frozenset[TorchMode]()
        left = tuple(mode for mode in item.modes if mode not in settled)
        if left:
            items.append(replace(item, modes=left))
        elif fresh:
            yield fresh
    for row in _timed(items, plan, gpu, tell, workers, compilers):
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
                digest = size_digest(problem, workload)
                yield TimesItem(problem, precision, workload, tuple(plan.modes), digest, plan.seconds, _threads(plan))


def _threads(plan: TimesPlan) -> int:
    return max(1, (os.cpu_count() or 1) // plan.jobs)


def _timed(
    items: Sequence[TimesItem],
    plan: TimesPlan,
    gpu: GpuInfo,
    tell: Callable[[str], object],
    workers: Callable[[int], TimesPool],
    compilers: Callable[[int], CompilePool],
) -> Iterator[PytorchTimes]:
    """The row of each item that is begun before time is up: some are compiled, then they are sampled."""
    deadline = math.inf if plan.minutes is None else time.monotonic() + 60 * plan.minutes

    def may_begin() -> bool:
        return time.monotonic() < deadline

    def compiled(some: Sequence[TimesItem], wanted: Callable[[], bool]) -> Iterator[TimesItem]:
        ahead = [item for item in some if _is_compiled_ahead(item, plan)]
        yield from (item for item in some if item not in ahead)
        begun = compilers(plan.jobs).run(ahead, lambda: may_begin() and wanted())
        for number, (item, _) in enumerate(begun, 1):
            tell(f"compiling ({number} of {len(ahead)})")
            yield item

    def sampled(
        some: Sequence[TimesItem], samplers: int
    ) -> Iterator[tuple[TimesItem, PytorchTimes | Failed | WorkerLost]]:
        # What was compiled was begun: it is finished.
        for begun in (True, False):
            group = [item for item in some if _is_compiled_ahead(item, plan) is begun]
            yield from workers(samplers).run(group, (lambda: True) if begun else may_begin)

    done, step, crowded = 0, max(_AT_ONCE * plan.jobs, 1), list[TimesItem]()
    batches = (items[begun : begun + step] for begun in range(0, len(items), step))
    queue = CompileQueue(compiled, STRAGGLERS if plan.jobs > STRAGGLERS else 0)
    groups = ((some, min(plan.jobs, SAMPLERS)) for some in queue.ready(batches))
    for some, samplers in chain(groups, [(crowded, 1)]):
        for item, found in sampled(tuple(some), samplers):
            if samplers > 1 and isinstance(found, Failed) and found.out_of_memory:
                crowded.append(item)  # once more when nothing else holds memory
                continue
            done += 1
            tell(f"{item.problem.id} {item.precision} {item.workload} ({done} of {len(items)})")
            yield found if isinstance(found, PytorchTimes) else _without_times(item, gpu, found)


def _is_compiled_ahead(item: TimesItem, plan: TimesPlan) -> bool:
    """One process compiles for itself, while it measures."""
    return plan.jobs > 1 and not AHEAD.isdisjoint(item.modes)


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
