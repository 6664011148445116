"""Builds a CUDA program for the emulated GPU, and keeps it until a file that it includes changes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxemu.compiling import run_compiler
from ptxemu.core.build import BuiltCore
from ptxemu.errors import ProgramDoesNotBuild, ProgramNotEmulatable
from ptxemu.machine.ptxas import PtxasResources, parse_resources
from ptxemu.metrics.launches import CodeFiles
from ptxemu.program.entries import BuildReport, Entry, UnitReport, sha256
from ptxemu.program.modules import missing_runtime_functions
from ptxemu.program.source import ProgramSource
from ptxemu.ptx.joining import joined
from ptxemu.ptx.text import read_ptx
from ptxemu.toolkit import CudaToolkit

_FORMAT = "ptxemu-program-5"
_LIBRARIES = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvrtc", "cu")
_NVRTC = "-lnvrtc"
_OTHER_FILES_HINT = "if another file of the program defines it, name that file, too: ptxemu a.cu b.cu"
_OF_ANOTHER_FILE = re.compile(r"Unresolved extern|external linkage.*whole program|undefined in device code")
_KERNELS_BY_KERNELS = (
    "kernel launch from __device__ or __global__ functions",
    *("cudaGetParameterBuffer", "cudaLaunchDevice", "__cudaCDP2"),
)
NOT_EMULATABLE_HINT = "docs/emulator.md lists what the emulated device executes; run it on a GPU"


@dataclass(frozen=True)
class BuiltUnit:
    """Device code that was compiled as one: of a file, or of all where it is linked.

    Attributes:
        ptx: its PTX.
        cubin: what ptxas made of that.
        resources: what ptxas said of its kernels.
        digest: CRC-32 of what host code registers for it.
    """

    ptx: Path
    cubin: Path
    resources: tuple[PtxasResources, ...]
    digest: int

    @property
    def code(self) -> CodeFiles:
        """Of which counts and times are made."""
        return CodeFiles(self.cubin, self.ptx, self.resources)


@dataclass(frozen=True)
class BuiltProgram:
    """A program that can be started, and its device code."""

    program: Path
    units: tuple[BuiltUnit, ...]


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
        names = [f"unit{number}.{kind}" for number in range(source.units) for kind in ("ptx", "cubin")]
        report = entry.ensure(lambda scratch: self._build(source, scratch), ("program", *names))
        units = (
            BuiltUnit(
                entry.directory / f"unit{number}.ptx",
                entry.directory / f"unit{number}.cubin",
                unit.resources,
                unit.digest,
            )
            for number, unit in enumerate(report.units)
        )
        return BuiltProgram(entry.directory / "program", tuple(units))

    def _build(self, source: ProgramSource, scratch: Path) -> BuildReport:
        files = source.cuda_files or (_without_kernels(scratch),)
        logs = [self._compile(source, file, f"device{k}", scratch) for k, file in enumerate(files)]
        for number, file in enumerate(source.host_files):
            self._compile(source, file, f"host{number}", scratch)
        units = [self._linked_unit(source, scratch)] if source.relocatable else list(self._own_units(logs, scratch))
        self._core_built()
        self._link(source, scratch)
        system = (*self._toolkit.include_dirs, scratch)
        rules = sorted(scratch.glob("*.d"))
        dependencies = {path: digest for one in rules for path, digest in _dependencies(one, system).items()}
        return BuildReport(tuple(units), dependencies)

    def _own_units(self, logs: Sequence[str], scratch: Path) -> Iterator[UnitReport]:
        """device0/*.ptx -> unit0.ptx and so on, of files with device code of their own."""
        for number, log in enumerate(logs):
            folder = scratch / f"device{number}"
            for kind in (".ptx", ".cubin"):
                next(folder.glob(f"*{kind}")).rename(scratch / f"unit{number}{kind}")
            registered = next(folder.glob("*.fatbin")).read_bytes()
            yield UnitReport(parse_resources(log, self._toolkit.demangle), zlib.crc32(registered))

    def _linked_unit(self, source: ProgramSource, scratch: Path) -> UnitReport:
        """device*.o, device*/*.ptx -> linked.o, which registers device code, and unit0.ptx with its cubin.

        nvlink says what is wrong among the files. What it links is not looked at: code and PTX have to match.

        Raises:
            ProgramDoesNotBuild: what a file declares, none defines, or several do.
            ProgramNotEmulatable: kernels launch kernels.
        """
        objects = [one.name for one in sorted(scratch.glob("device*.o"))]
        self._run(source, ["-dlink", *objects, "-o", "linked.o"], scratch, "link")
        texts = [next((scratch / one.removesuffix(".o")).glob("*.ptx")) for one in objects]
        text = joined([read_ptx(one) for one in texts])
        (scratch / "unit0.ptx").write_text(text, encoding="utf-8")
        log = self._run(source, ["-cubin", "unit0.ptx", "-o", "unit0.cubin"], scratch, "assemble")
        return UnitReport(parse_resources(log, self._toolkit.demangle))

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
        """file -> name.o, name.d and, of CUDA, what nvcc makes on its way, in the folder `name`. Returns the log.

        Raises:
            ProgramDoesNotBuild: the compiler refuses it.
            ProgramNotEmulatable: it launches kernels from kernels, or includes a library that has no PTX.
        """
        (scratch / name).mkdir()
        language = "c++" if file in source.host_files else "cu"
        linking = ("-rdc=true",) if source.relocatable and language == "cu" else ()
        files = ("--keep", "--keep-dir", str(scratch / name), "-MD", "-MF", f"{name}.d")
        return self._run(
            source, [*linking, *files, "-x", language, "-c", str(file.resolve()), "-o", f"{name}.o"], scratch, "compile"
        )

    def _run(self, source: ProgramSource, arguments: Sequence[str], scratch: Path, what: str) -> str:
        """nvcc in the scratch folder; the log. Raises as `_compile`, with the word for what it does not do."""
        nvcc = (str(self._toolkit.nvcc), "-ccbin", str(self._toolkit.host_compiler))
        done = run_compiler([*nvcc, *self._compile_flags(), *source.compile_flags, *arguments], scratch)
        if not done.ok:
            if missing := missing_in(done.text):
                raise not_emulatable(source.files[0], missing, done.text)
            reason = done.first_error("the compiler")
            raise _refused(f"{source.files[0]} does not {what}: {reason}", done.text)
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
        raise ProgramDoesNotBuild(
            f"{source.files[0]} does not link: {reason}",
            hint=_OTHER_FILES_HINT if undefined else "see the linker's messages",
            log=done.text,
        )


def _without_kernels(scratch: Path) -> Path:
    """The device code of a program of host files alone, which may load PTX while it runs."""
    path = scratch / "none.cu"
    path.touch()
    return path


def not_emulatable(source: Path, reason: str, log: str) -> ProgramNotEmulatable:
    """The error for a program that needs what the emulator lacks."""
    return ProgramNotEmulatable(f"{source}: not emulatable: {reason}", hint=NOT_EMULATABLE_HINT, log=log)


def _refused(message: str, log: str) -> ProgramDoesNotBuild:
    hint = "see the compiler's messages; --include DIR adds a directory with headers, --nvcc FLAGS passes flags on"
    if _OF_ANOTHER_FILE.search(log):
        hint = "device code of one file uses what another defines: --nvcc=-rdc=true has it linked"
    return ProgramDoesNotBuild(message, hint=hint, log=log)


def missing_in(log: str) -> str | None:
    """What a program lacks that does not compile; None when the compiler has another complaint."""
    if any(sign in log for sign in _KERNELS_BY_KERNELS):
        return "kernels launched by kernels"
    if header := re.search(r"fatal error: (curand_\w+\.h)", log):
        return f"{header[1]} is not installed: what kernels call of cuRAND is in its headers (--include DIR)"
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
