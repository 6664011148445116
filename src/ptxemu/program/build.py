"""Builds a CUDA program for the emulated GPU, and keeps it until a file that it includes changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxemu.compiling import run_compiler
from ptxemu.core.build import BuiltCore
from ptxemu.errors import ProgramDoesNotBuild, ProgramNotEmulatable
from ptxemu.machine.ptxas import PtxasResources, parse_resources
from ptxemu.program.entries import BuildReport, Entry, sha256
from ptxemu.program.modules import missing_runtime_functions
from ptxemu.program.source import ProgramSource
from ptxemu.toolkit import CudaToolkit

_FORMAT = "ptxemu-program-4"
_LIBRARIES = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvrtc", "cu")
_NVRTC = "-lnvrtc"
NOT_EMULATABLE_HINT = "docs/emulator.md lists what the emulated device executes; run it on a GPU"


@dataclass(frozen=True)
class BuiltProgram:
    """A program that can be started, its PTX and machine code, and what ptxas said of its kernels."""

    program: Path
    ptx: Path
    cubin: Path
    resources: tuple[PtxasResources, ...]


class ProgramBuilder:
    """Compiles and links programs. Safe for many threads and processes over one cache.

    Args:
        toolkit: nvcc and the host compiler.
        core: the stand-in runtime to link, which may still be built.
        core_built: returns when the core is.
        compile_arch: what nvcc compiles for, e.g. `sm_90a`.
        include_dirs: directories searched for headers, beside the program's own.
        cache_dir: where built programs are kept.
    """

    def __init__(
        self,
        toolkit: CudaToolkit,
        core: BuiltCore,
        core_built: Callable[[], object],
        compile_arch: str,
        include_dirs: Sequence[Path],
        cache_dir: Path,
    ) -> None:
        self._toolkit = toolkit
        self._core = core
        self._core_built = core_built
        self._arch = compile_arch
        self._includes = tuple(directory.resolve() for directory in include_dirs)
        self._cache = cache_dir / "emulated-programs"

    def build(self, source: ProgramSource) -> BuiltProgram:
        """Compile and link, or take from the cache.

        Raises:
            ProgramDoesNotBuild: it does not compile or link.
            ProgramNotEmulatable: it calls what the stand-in runtime lacks.
        """
        key = [_FORMAT, *source.key, *self._compile_flags(), *self._link_flags(), self._toolkit.version]
        entry = Entry.of(self._cache, key)
        report = entry.ensure(lambda scratch: self._build(source, scratch), ("program", "program.ptx", "program.cubin"))
        program = entry.directory / "program"
        return BuiltProgram(program, program.with_suffix(".ptx"), program.with_suffix(".cubin"), report.resources)

    def _build(self, source: ProgramSource, scratch: Path) -> BuildReport:
        log = self._compile(source, source.unit(scratch), "program", scratch)
        for kept in (".ptx", ".cubin"):
            next(scratch.glob(f"*{kept}")).rename(scratch / f"program{kept}")
        for number, file in enumerate(source.host_files):
            self._compile(source, file.resolve(), f"host{number}", scratch)
        self._core_built()
        self._link(source, scratch)
        system = (*self._toolkit.include_dirs, scratch)
        rules = sorted(scratch.glob("*.d"))
        return BuildReport(
            resources=parse_resources(log, self._toolkit.demangle),
            dependencies={path: digest for one in rules for path, digest in _dependencies(one, system).items()},
        )

    def _compile_flags(self) -> tuple[str, ...]:
        number = self._arch.removeprefix("sm_")
        return (
            *("-O3", "-std=c++17", f"-gencode=arch=compute_{number},code=sm_{number}"),
            # With lines of host code, too, which say where memory was allocated.
            *("-lineinfo", "-Xcompiler=-g1", "-Xptxas=-v", "-Wno-deprecated-gpu-targets"),
            *(f"-I{directory}" for directory in self._includes),
        )

    def _link_flags(self) -> tuple[str, ...]:
        directory = self._core.library_dir
        return (f"-L{directory}", f"-l{self._core.library_name}", f"-Wl,-rpath,{directory}", "-lpthread", "-ldl")

    def _compile(self, source: ProgramSource, file: Path, name: str, scratch: Path) -> str:
        """file -> name.o, name.d and, of CUDA, a .ptx and a .cubin. Returns the log.

        Raises:
            ProgramDoesNotBuild: the compiler refuses it.
            ProgramNotEmulatable: it launches kernels from kernels, or includes a library that has no PTX.
        """
        language = "c++" if file in [one.resolve() for one in source.host_files] else "cu"
        done = run_compiler(
            [
                *(str(self._toolkit.nvcc), "-ccbin", str(self._toolkit.host_compiler), *self._compile_flags()),
                *(*source.compile_flags, "--keep", "--keep-dir", str(scratch), "-MD", "-MF", f"{name}.d"),
                *("-x", language, "-c", str(file), "-o", f"{name}.o"),
            ],
            scratch,
        )
        if not done.ok:
            if missing := missing_in(done.text):
                raise not_emulatable(source.files[0], missing, done.text)
            reason = done.first_error("the compiler")
            raise _refused(f"{source.files[0]} does not compile: {reason}", done.text)
        return done.text

    def _libraries(self, source: ProgramSource) -> list[str]:
        """The program's flags of the linker, with the path of NVRTC, whose PTX is assembled as any other.

        Raises ProgramNotEmulatable when NVRTC is not on this machine.
        """
        given = [flag for flag in source.link_flags if not flag.startswith(_NVRTC)]
        if len(given) == len(source.link_flags):
            return given
        library = self._toolkit.library("nvrtc")
        if library is None:
            raise not_emulatable(source.files[0], "the library nvrtc, which is not on this machine", "")
        # NVRTC opens a library of its own by name, which only the old kind of path is searched for.
        return [*given, str(library), f"-Wl,--disable-new-dtags,-rpath,{library.parent}"]

    def _link(self, source: ProgramSource, scratch: Path) -> None:
        """program.o -> program. Raises ProgramDoesNotBuild and ProgramNotEmulatable."""
        objects = sorted(one.name for one in scratch.glob("*.o"))
        flags = (*self._libraries(source), *self._link_flags())
        done = run_compiler([str(self._toolkit.host_compiler), *objects, "-o", "program", *flags], scratch)
        if done.ok:
            return
        undefined = list(dict.fromkeys(re.findall(r"undefined reference to [`']([^'`]+)'", done.text)))
        missing = missing_runtime_functions(undefined) or _missing_library(undefined)
        if missing:
            raise not_emulatable(source.files[0], missing, done.text)
        reason = f"undefined: {', '.join(undefined)}" if undefined else f"the linker {done.how}"
        raise _refused(f"{source.files[0]} does not link: {reason}", done.text)


def not_emulatable(source: Path, reason: str, log: str) -> ProgramNotEmulatable:
    """The error for a program that needs what the emulator lacks."""
    return ProgramNotEmulatable(f"{source}: not emulatable: {reason}", hint=NOT_EMULATABLE_HINT, log=log)


def _refused(message: str, log: str) -> ProgramDoesNotBuild:
    hint = "see the compiler's messages; --include DIR adds a directory with headers, --nvcc FLAGS passes flags on"
    return ProgramDoesNotBuild(message, hint=hint, log=log)


def missing_in(log: str) -> str | None:
    """What a program lacks that does not compile; None when the compiler has another complaint."""
    if "kernel launch from __device__ or __global__ functions" in log:
        return "kernels launched by kernels"
    if header := re.search(r"fatal error: ((?:cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|npp|nvrtc)\w*\.h)", log):
        return f"the library of {header[1]}, which comes without PTX, or its headers are not installed"
    return None


def _missing_library(undefined: Sequence[str]) -> str | None:
    """What to say of a program that calls GPU libraries, which come without PTX; None when it lacks something else."""
    if not undefined or not all(name.startswith(_LIBRARIES) for name in undefined):
        return None
    return f"the emulated device has no {', '.join(undefined)}"


def _dependencies(rules: Path, system: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of every file that the program includes, without those of the toolkit and the system."""
    words = re.findall(r"(?:[^\s\\]|\\.)+", rules.read_text(encoding="utf-8").replace("\\\n", " ").partition(":")[2])
    paths = {Path(re.sub(r"\\(.)", r"\1", word)).resolve() for word in words}
    own = (path for path in paths if not any(path.is_relative_to(root) for root in (*system, Path("/usr"))))
    return {str(path): sha256(path) for path in sorted(own)}
