"""What was counted of a run, as the launches that a profiler shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxemu.counters.machine_code import read_code, with_machine_counts
from ptxemu.counters.record import CountedRecord
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.metrics.profile import KernelLaunch, kernel_launch
from ptxemu.model.architecture import GpuModel
from ptxemu.model.call import CallEstimate, estimate_call
from ptxemu.model.kernel import Unlaunchable


@dataclass(frozen=True)
class ModelledRun:
    """Launches in their order, and the modelled time of copies and fills.

    `warnings` says what a GPU would have refused; nothing is modelled then.
    """

    launches: tuple[KernelLaunch, ...]
    transfers_us: float
    warnings: tuple[str, ...] = ()


def modelled_run(
    records: Sequence[CountedRecord],
    cubin: Path,
    ptx: Path,
    resources: Sequence[PtxasResources],
    gpu: GpuModel,
    *,
    lines: int = 0,
) -> ModelledRun:
    """Model the times of what was counted.

    Args:
        records: launches and transfers, in order.
        cubin: the machine code of the kernels.
        ptx: what that was made of.
        resources: what ptxas said of them.
        gpu: the GPU to stand for.
        lines: source lines to profile for each launch.
    """
    known = {kernel.symbol: kernel for kernel in resources}
    try:
        call = estimate_call(with_machine_counts(records, read_code(cubin, ptx)), known, gpu)
    except Unlaunchable as error:
        return ModelledRun((), 0.0, (f"a GPU would refuse a launch: {error}",))
    return _shown(call, gpu, lines)


def _shown(call: CallEstimate, gpu: GpuModel, lines: int) -> ModelledRun:
    return ModelledRun(tuple(kernel_launch(one, gpu, lines=lines) for one in call.kernels), call.transfers_us)
