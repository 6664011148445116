"""A PTX text whose kernels can be launched."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from ptxemu.checks.findings import Finding, named, read_findings
from ptxemu.core.build import ensure_core
from ptxemu.counters.report import CountedReport, counted_report
from ptxemu.errors import InvalidInput, ProgramNotEmulatable
from ptxemu.files import default_cache_dir
from ptxemu.kernels.arguments import arguments
from ptxemu.kernels.errors import KernelFailed
from ptxemu.kernels.job import Ended, Extents, Launch, LaunchProcess
from ptxemu.metrics.launches import modelled_run
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import KernelLaunch
from ptxemu.model.architecture import GpuModel, gpu_of_architecture
from ptxemu.program.modules import ensure_figures
from ptxemu.program.texts import BuiltKernels, build_kernels
from ptxemu.ptx.syntax import parse
from ptxemu.ptx.tree import Declared
from ptxemu.toolkit import CudaToolkit


@dataclass(frozen=True)
class LaunchResult:
    """One launch that ended well; its arrays hold what it has written.

    Attributes:
        launch: what was counted and modelled, as Nsight Compute would show it.
        findings: what the checks found; None when they were not on.
        printed: the kernel's own output.
        seconds: wall time on this machine's CPU; says nothing of a GPU.
    """

    launch: KernelLaunch
    findings: tuple[Finding, ...] | None
    printed: str
    seconds: float

    @property
    def metrics(self) -> dict[str, float]:
        """Nsight name -> value, see `KernelLaunch`."""
        return self.launch.metrics

    @property
    def modelled_us(self) -> float:
        """Modelled duration on the GPU that is emulated, in microseconds."""
        return self.launch.metrics[NsightMetric.DURATION] / 1e3


@dataclass(frozen=True)
class PtxModule:
    """A PTX text, assembled for one GPU.

    Attributes:
        parameters: of each kernel, by its mangled name.
        gpu: the GPU that is emulated.
        built: its files.
        figures: file with the figures of the GPU.
        library: the core.
        toolkit: what it was assembled with.
    """

    parameters: dict[str, tuple[Declared, ...]]
    gpu: GpuModel
    built: BuiltKernels
    figures: Path
    library: Path
    toolkit: CudaToolkit

    @classmethod
    def load(cls, text: str, *, arch: str, cache_root: Path | None = None) -> Self:
        """Assemble, or take from the cache. Raises as `api.load_ptx`."""
        gpu, cache, toolkit = gpu_of_architecture(arch), cache_root or default_cache_dir(), CudaToolkit.find()
        built = build_kernels(text, toolkit, gpu.architecture.compile_arch, cache)
        functions = [one for one in parse(text).functions if one.is_kernel and one.defined]
        parameters = {one.name: tuple(one.parameters) for one in functions}
        return cls(parameters, gpu, built, ensure_figures(gpu, cache), ensure_core(cache).library, toolkit)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels, as the PTX has them."""
        return tuple(self.parameters)

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[object] = (),
        *,
        shared_bytes: int = 0,
        cluster: Sequence[int] | None = None,
        cooperative: bool = False,
        checks: bool = False,
        lines: int = 0,
        timeout_s: float = 300.0,
    ) -> LaunchResult:
        """Launch a kernel on arrays of this process, which hold afterwards what it has written.

        Args:
            kernel: its name in the PTX.
            grid, block: up to three extents.
            args: its arguments. Pointers: None, or contiguous arrays on the CPU (of NumPy, of PyTorch and others by
                DLPack, Python's buffers); overlapping ones overlap on the device. Numbers take the parameter's type.
                Structures: `bytes` or ctypes structures.
            shared_bytes: dynamic shared memory of a block.
            cluster: blocks of a cluster; the kernel's own choice if not given.
            cooperative: whether blocks may wait for each other, all being on the GPU at once.
            checks: whether memory, races and barriers are checked, which takes several times as long.
            lines: source lines to profile; the PTX needs `.loc` directives for that.
            timeout_s: seconds after which it is killed.

        Raises:
            InvalidInput: no such kernel, arguments that do not fit, or a launch that a GPU refuses.
            KernelFailed: it failed or was killed; arrays are as they were.
            ProgramNotEmulatable: it needs what the emulator lacks.
        """
        if kernel not in self.parameters:
            raise InvalidInput(f"the PTX has no kernel {kernel}", hint=f"it has {', '.join(self.kernels) or 'none'}")
        passed = arguments(kernel, self.parameters[kernel], args)
        chosen = None if cluster is None else _extents(cluster, "cluster")
        launch = Launch(kernel, _extents(grid, "grid"), _extents(block, "block"), shared_bytes, chosen, cooperative)
        with TemporaryDirectory(prefix="ptxemu-") as scratch:
            report, found = Path(scratch) / "report.jsonl", Path(scratch) / "findings.jsonl"
            environment = self._environment(report, found if checks else None)
            began = time.monotonic()
            ended = LaunchProcess(self.library, Path(scratch), environment, timeout_s).run(launch, passed)
            seconds = time.monotonic() - began
            counted = counted_report(report, cut_off=ended.killed)
            findings = tuple(named(read_findings(found, cut_off=ended.killed), self.toolkit.demangle))
        _refuse_failures(kernel, ended, counted, findings)
        return LaunchResult(self._modelled(counted, lines), findings if checks else None, ended.printed, seconds)

    def _environment(self, report: Path, findings: Path | None) -> dict[str, str]:
        told = {
            "PTXEMU_MODULE": str(self.built.module),
            "PTXEMU_DEVICE": str(self.figures),
            "PTXEMU_COUNT": "1",
            "PTXEMU_REPORT": str(report),
        }
        return told if findings is None else told | {"PTXEMU_CHECKS": str(findings)}

    def _modelled(self, counted: CountedReport, lines: int) -> KernelLaunch:
        run = modelled_run(counted.records, self.built.code, self.gpu, lines=lines)
        if not run.launches:
            raise InvalidInput("; ".join(run.warnings), hint="use fewer registers, threads or less shared memory")
        return run.launches[0]


def _extents(given: int | Sequence[int], what: str) -> Extents:
    """Three extents, those that are left out 1. Raises InvalidInput."""
    found = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(found) <= 3 or not all(0 < one < 1 << 31 for one in found):
        raise InvalidInput(f"{what} {given} is not one to three positive extents", hint="give an integer or a tuple")
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def _refuse_failures(kernel: str, ended: Ended, counted: CountedReport, findings: tuple[Finding, ...]) -> None:
    """Raises InvalidInput, KernelFailed or ProgramNotEmulatable, unless the kernel has ended well."""
    if counted.missing:
        raise ProgramNotEmulatable(f"{kernel}: not emulatable: {'; '.join(counted.missing)}", log=ended.messages)
    if counted.faults:
        hint = "checks=True says where memory and barriers are misused"
        raise KernelFailed(f"{ended.error}: {counted.faults[0]}", hint=hint, findings=findings)
    if ended.killed:
        raise KernelFailed(f"{kernel}: {ended.messages.strip()}", hint="give it more time, or less work")
    if ended.error is not None:
        raise InvalidInput(f"{kernel}: a GPU would refuse the launch: {ended.error}", hint="see its grid and block")
