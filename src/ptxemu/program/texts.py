"""PTX text that has no program: assembled for the core, and by ptxas, whose code says what a GPU would execute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptxemu.compiling import run_compiler
from ptxemu.errors import CoreFailure, ProgramDoesNotBuild
from ptxemu.machine.ptxas import PtxasResources, parse_resources
from ptxemu.metrics.launches import CodeFiles
from ptxemu.program.entries import BuildReport, Entry, UnitReport
from ptxemu.program.modules import ensure_module
from ptxemu.toolkit import CudaToolkit

_FORMAT = "ptxemu-kernels-2"


@dataclass(frozen=True)
class BuiltKernels:
    """The kernels of a PTX text.

    Attributes:
        ptx: the text.
        cubin: what ptxas made of it.
        module: it, as the core reads it.
        resources: what ptxas said of each kernel.
    """

    ptx: Path
    cubin: Path
    module: Path
    resources: tuple[PtxasResources, ...]

    @property
    def code(self) -> CodeFiles:
        """Of which counts and times are made."""
        return CodeFiles(self.cubin, self.ptx, self.resources)


def build_kernels(text: str, toolkit: CudaToolkit, compile_arch: str, cache_dir: Path) -> BuiltKernels:
    """Assemble a PTX text, or take it from the cache.

    Args:
        text: PTX with one kernel at least.
        toolkit: with nvcc, which starts ptxas.
        compile_arch: what ptxas compiles for, e.g. `sm_90a`.
        cache_dir: where results are kept.

    Raises:
        ProgramDoesNotBuild: ptxas refuses it.
        ProgramNotEmulatable: it needs an instruction that the emulator lacks.
    """
    entry = Entry.of(cache_dir / "emulated-kernels", (_FORMAT, text, compile_arch, toolkit.version))

    def assemble(scratch: Path) -> BuildReport:
        (scratch / "kernels.ptx").write_text(text, encoding="utf-8")
        log = _ptxas(toolkit, compile_arch, scratch)
        return BuildReport((UnitReport(parse_resources(log, toolkit.demangle)),))

    (unit,) = entry.ensure(assemble, ("kernels.ptx", "kernels.cubin")).units
    ptx = entry.directory / "kernels.ptx"
    module = ensure_module(entry.directory / "kernels", ptx, toolkit.include_dirs, unit.resources)
    return BuiltKernels(ptx, entry.directory / "kernels.cubin", module, unit.resources)


def code_of_module(module: Path) -> CodeFiles:
    """What lies beside a module that `build_kernels` has made. Raises CoreFailure when it is gone."""
    report = Entry(module.parent).report
    if report is None:
        raise CoreFailure(f"{module} is gone", hint="run it again, and leave the cache directory alone meanwhile")
    (unit,) = report.units
    return CodeFiles(module.with_name("kernels.cubin"), module.with_name("kernels.ptx"), unit.resources)


def _ptxas(toolkit: CudaToolkit, compile_arch: str, scratch: Path) -> str:
    """kernels.ptx -> kernels.cubin. Returns the log. Raises ProgramDoesNotBuild."""
    flags = (f"-arch={compile_arch}", "-Xptxas=-v,--generate-line-info", "-Wno-deprecated-gpu-targets")
    done = run_compiler([str(toolkit.nvcc), "-cubin", *flags, "kernels.ptx", "-o", "kernels.cubin"], scratch)
    if done.ok:
        return done.text
    raise ProgramDoesNotBuild(
        f"ptxas refuses the PTX: {done.first_error('it')}",
        hint=f"it was assembled for {compile_arch}: mend the text, or give another arch",
        log=done.text,
    )
