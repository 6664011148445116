"""Runs any self-contained CUDA program on the emulated GPU: built by the real nvcc, linked to the stand-in runtime.

    program = EmulatedProgram.build(Path("saxpy.cu"), arch="sm_90")
    result = program.run(["1000000"], timeout_s=60)
    result.launches[0].metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]

The program is trusted like one that its owner starts by hand: it runs in the caller's directory, with the caller's
environment and streams.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Self

from ptxemu.checks.findings import SourcePlace, named, read_findings, read_leaks
from ptxemu.core.build import ensure_core, locate_core
from ptxemu.counters.launch import LaunchRecord
from ptxemu.counters.report import CountedReport, NotSampled, counted_report
from ptxemu.errors import ProgramNotEmulatable
from ptxemu.files import default_cache_dir
from ptxemu.metrics.launches import CodeFiles, modelled_run
from ptxemu.model.architecture import GpuModel, gpu_of_architecture
from ptxemu.program.build import BuiltProgram, ProgramBuilder, not_emulatable
from ptxemu.program.host_lines import host_lines
from ptxemu.program.loading import loader_command
from ptxemu.program.modules import ensure_figures, ensure_list, ensure_module
from ptxemu.program.refusals import host_fault, refusals, running
from ptxemu.program.result import RunResult
from ptxemu.program.source import ProgramSource
from ptxemu.program.texts import code_of_module
from ptxemu.toolkit import CudaToolkit

DEFAULT_ARCH = "sm_90"
_WHAT_IS_IT_DOING = signal.SIGRTMAX - 3
"""At which the core tells and kills the program; so does the signal itself where there is no core."""
_TELLING_S = 2.0


@dataclass(frozen=True)
class Streams:
    """Where the program reads and writes; None is this process's own stream."""

    stdin: int | IO[bytes] | None = None
    stdout: int | IO[bytes] | None = None
    stderr: int | IO[bytes] | None = None


@dataclass(frozen=True)
class EmulatedProgram:
    """A program that is built and assembled, for one GPU.

    Attributes:
        source: the .cu file.
        built: the program, its PTX and its kernels' resources.
        modules: the PTX of each of its units as the core reads it.
        figures: file with the figures of the GPU.
        gpu: the GPU it runs on.
        toolkit: what it was built with.
        cache: where PTX goes that it loads while it runs.
    """

    source: Path
    built: BuiltProgram
    modules: tuple[Path, ...]
    figures: Path
    gpu: GpuModel
    toolkit: CudaToolkit
    cache: Path

    @classmethod
    def build(
        cls,
        source: Path,
        *,
        more: Sequence[Path] = (),
        arch: str = DEFAULT_ARCH,
        include_dirs: Sequence[Path] = (),
        nvcc_flags: Sequence[str] = (),
        cache_root: Path | None = None,
    ) -> Self:
        """Compile, link and assemble a program; unchanged programs come from the cache.

        Args:
            source: a .cu file.
            more: further CUDA and C++ files; one of all has a `main`. Their device code is linked where the flags say
                `-rdc=true`.
            arch: `sm_80`, `sm_86`, `sm_89`, `sm_90` or `sm_100`.
            include_dirs: further directories with headers.
            nvcc_flags: of the program; those that say what is made and for which GPU are refused.
            cache_root: where programs and the core are kept; the user's cache if not given.

        Raises:
            InvalidInput: no such file or architecture, or a flag that is not to be given.
            ProgramDoesNotBuild: it does not compile or link.
            ProgramNotEmulatable: it needs something that the emulator lacks.
            ToolkitMissing: no nvcc or no host compiler.
            CoreFailure: the core does not build.
        """
        sources = ProgramSource.of((source, *more), nvcc_flags)
        gpu, cache = gpu_of_architecture(arch), cache_root or default_cache_dir()
        toolkit = CudaToolkit.find()
        # The core takes longer to build than a program to compile: the first time, both go on at once.
        with ThreadPoolExecutor(1, thread_name_prefix="core") as pool:
            core = pool.submit(ensure_core, cache)
            arch = gpu.architecture.compile_arch
            built = ProgramBuilder(toolkit, locate_core(cache), core.result, arch, include_dirs, cache).build(sources)
            core.result()
        try:
            modules = tuple(
                ensure_module(one.ptx.with_suffix(""), one.ptx, toolkit.include_dirs, one.resources)
                for one in built.units
            )
        except ProgramNotEmulatable as error:
            raise not_emulatable(source, error.message, error.log) from error
        return cls(source, built, modules, ensure_figures(gpu, cache), gpu, toolkit, cache)

    @property
    def module(self) -> Path:
        """What the core is told: the module, or a list of them, which is written where it is not yet there."""
        if len(self.modules) == 1:
            return self.modules[0]
        return ensure_list({one.digest: module for one, module in zip(self.built.units, self.modules, strict=True)})

    def run(
        self,
        arguments: Sequence[str] = (),
        *,
        timeout_s: float,
        checks: bool = False,
        leaks: bool = False,
        lines: int = 0,
        sample: int = 0,
        streams: Streams | None = None,
    ) -> RunResult:
        """Run to the end, or kill after `timeout_s` seconds; every launch is counted.

        A program that fails is no error here: `RunResult.exit_code` says how it ended.

        Args:
            arguments: of the program.
            timeout_s: wall time it may take.
            checks: whether memory and synchronisation are checked, which takes several times as long.
            leaks: whether device memory that is not freed in the end is a finding, too; implies `checks`.
            lines: source lines to profile for each launch.
            sample: warp instructions of a launch that are enough: beyond them the blocks of whole SMs are left out, so
                that outputs are incomplete, and counts are scaled. 0 executes every block.
            streams: where it reads and writes; this process's own streams if not given.

        Raises:
            CoreFailure: the core's report does not read.
            ProgramNotEmulatable: what a sample leaves out would decide what else is executed.
        """
        with TemporaryDirectory(prefix="ptxemu-") as scratch:
            report, found = Path(scratch) / "report.jsonl", Path(scratch) / "findings.jsonl"
            checks = checks or leaks
            extra = {"PTXEMU_REPORT": str(report)} | ({"PTXEMU_CHECKS": str(found)} if checks else {})
            extra |= {"PTXEMU_REFUSED": "1"} | ({"PTXEMU_LEAKS": "1"} if leaks else {})
            extra |= {"PTXEMU_SAMPLE": str(sample)} if sample else {}
            began = time.monotonic()
            code = self._execute(arguments, extra, timeout_s, streams or Streams())
            seconds = time.monotonic() - began
            killed = code is None or code < 0
            counted, findings = self._report(report, killed), read_findings(found, cut_off=killed)
            leaked = read_leaks(found, self._host_lines) if leaks and not killed else []
        own, loaded = self._code(counted)
        refused = refusals(counted.refused, self._host_lines)
        modelled = modelled_run(counted.records, own, self.gpu, loaded=loaded, lines=lines)
        return RunResult(
            program=str(self.source),
            arguments=tuple(arguments),
            device=self.gpu.facts(cuda_version=self.toolkit.version),
            exit_code=code,
            seconds=seconds,
            launches=modelled.launches,
            transfers_us=modelled.transfers_us,
            findings=(*named(findings, self.toolkit.demangle), *(one.finding for one in refused), *leaked)
            if checks
            else None,
            warnings=(*modelled.warnings, *(one.sentence for one in refused if not checks)),
            faults=counted.faults,
            missing=counted.missing,
            host_fault=host_fault(counted.host_fault, self._host_lines),
            running=running(counted.running, self._host_lines),
        )

    def _code(self, counted: CountedReport) -> tuple[CodeFiles | None, dict[str, CodeFiles]]:
        """Of the one module that records do not name, and of those that they do."""
        units = self.built.units
        known = {str(module): one.code for one, module in zip(units, self.modules, strict=True)}
        named = {one.module for one in counted.records if isinstance(one, LaunchRecord) and one.module is not None}
        loaded = {module: code_of_module(Path(module)) for module in named if module not in known}
        return (units[0].code, loaded) if len(units) == 1 else (None, loaded | known)

    def _host_lines(self, addresses: Sequence[int]) -> list[SourcePlace | None]:
        kernels = [one.name for unit in self.built.units for one in unit.resources]
        return host_lines(self.built.program, addresses, self.toolkit.include_dirs, kernels)

    def _report(self, report: Path, killed: bool) -> CountedReport:
        try:
            return counted_report(report, cut_off=killed)
        except NotSampled as because:
            raise ProgramNotEmulatable(
                f"{self.source}: a sample of blocks cannot stand for all: {because.reason}",
                hint="run it without --sample, or at a smaller size",
            ) from because

    def _execute(
        self, arguments: Sequence[str], extra: Mapping[str, str], timeout_s: float, streams: Streams
    ) -> int | None:
        """Exit status, minus a signal's number, or None when the time was up."""
        environment = {
            **os.environ,
            "PTXEMU_MODULE": str(self.module),
            "PTXEMU_DEVICE": str(self.figures),
            "PTXEMU_LOADER": loader_command(self.gpu, self.cache),
            "PTXEMU_COUNT": "1",
            **extra,
        }
        process = subprocess.Popen(
            [str(self.built.program), *arguments],
            env=environment,
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.send_signal(_WHAT_IS_IT_DOING)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TELLING_S)
            return None
        finally:
            if process.returncode is None:
                # What the program itself has started goes with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
