"""What was counted of a run, as the launches that a profiler shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class CodeFiles:
    """The kernels of a program, or of a module that it has loaded.

    Attributes:
        cubin: their machine code.
        ptx: what that was made of.
        resources: what ptxas said of them.
    """

    cubin: Path
    ptx: Path
    resources: tuple[PtxasResources, ...]


def modelled_run(
    records: Sequence[CountedRecord],
    code: CodeFiles | None,
    gpu: GpuModel,
    *,
    loaded: Mapping[str, CodeFiles] | None = None,
    lines: int = 0,
) -> ModelledRun:
    """Model the times of what was counted.

    Args:
        records: launches and transfers, in order.
        code: kernels of the module that records do not name; None where they name all.
        gpu: the GPU to stand for.
        loaded: other modules, by the names that records have for them.
        lines: source lines to profile for each launch.
    """
    resources = {kernel.symbol: kernel for kernel in code.resources} if code else {}
    machine = dict(read_code(code.cubin, code.ptx)) if code else {}
    for module, files in (loaded or {}).items():
        resources |= {f"{module}:{kernel.symbol}": kernel for kernel in files.resources}
        machine |= {f"{module}:{name}": one for name, one in read_code(files.cubin, files.ptx).items()}
    try:
        call = estimate_call(with_machine_counts(records, machine), resources, gpu)
    except Unlaunchable as error:
        return ModelledRun((), 0.0, (f"a GPU would refuse a launch: {error}",))
    return _shown(call, gpu, lines)


def _shown(call: CallEstimate, gpu: GpuModel, lines: int) -> ModelledRun:
    return ModelledRun(tuple(kernel_launch(one, gpu, lines=lines) for one in call.kernels), call.transfers_us)
