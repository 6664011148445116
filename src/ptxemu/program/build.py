"""Builds a self-contained CUDA program for the emulated GPU, and keeps it until a file that it includes changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ptxemu.core.build import Core
from ptxemu.decoding import decode
from ptxemu.errors import ProgramDoesNotBuild, ProgramNotEmulatable
from ptxemu.files import locked
from ptxemu.machine.ptxas import PtxasResources, parse_resources
from ptxemu.program.modules import missing_runtime_functions
from ptxemu.toolkit import CudaToolkit

_FORMAT = "ptxemu-program-1"
_LIBRARIES = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvrtc", "cu")
_COMPILE_TIMEOUT_S = 300.0
"""Template-heavy programs take a minute; a template bomb takes for ever."""
NOT_EMULATABLE_HINT = "docs/emulator.md lists what the emulated device executes; run it on a GPU"


@dataclass(frozen=True)
class BuiltProgram:
    """A program that can be started, its PTX and machine code, and what ptxas said of its kernels."""

    program: Path
    ptx: Path
    cubin: Path
    resources: tuple[PtxasResources, ...]


@dataclass(frozen=True)
class _BuildReport:
    """What is kept beside a built program: SHA-256 of the files it was built from, and ptxas' report."""

    dependencies: dict[str, str]
    resources: tuple[PtxasResources, ...]

    @property
    def current(self) -> bool:
        """Whether all those files hold now what they held then."""
        return all(Path(path).is_file() and _sha256(Path(path)) == digest for path, digest in self.dependencies.items())


@dataclass(frozen=True)
class _ToolOutput:
    ok: bool
    text: str
    how: str
    """`exited with status 1`, for a person."""


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
        core: Core,
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

    def build(self, source: Path) -> BuiltProgram:
        """Compile and link, or take from the cache.

        Raises:
            ProgramDoesNotBuild: it does not compile or link.
            ProgramNotEmulatable: it calls what the stand-in runtime lacks.
        """
        key = [_FORMAT, str(source.resolve()), *self._compile_flags(), *self._link_flags(), self._toolkit.version]
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
        entry = self._cache / digest[:2] / digest
        entry.parent.mkdir(parents=True, exist_ok=True)
        with locked(entry.with_suffix(".lock")):
            report = _read_report(entry)
            if report is None or not report.current:
                report = self._build(source, entry)
        return BuiltProgram(entry / "program", entry / "program.ptx", entry / "program.cubin", report.resources)

    def _build(self, source: Path, entry: Path) -> _BuildReport:
        with TemporaryDirectory(prefix="ptxemu-") as directory:
            scratch = Path(directory)
            log = self._compile(source, scratch)
            self._core_built()
            self._link(source, scratch)
            report = _BuildReport(
                dependencies=_dependencies(scratch / "program.d", self._toolkit.include_dirs),
                resources=parse_resources(log, self._toolkit.demangle),
            )
            (scratch / "report.json").write_text(json.dumps(asdict(report)), encoding="utf-8")
            for kept in (".ptx", ".cubin"):
                next(scratch.glob(f"*{kept}")).rename(scratch / f"program{kept}")
            _publish(scratch, ("program", "program.ptx", "program.cubin", "report.json"), entry)
        return report

    def _compile_flags(self) -> tuple[str, ...]:
        number = self._arch.removeprefix("sm_")
        return (
            *("-O3", "-std=c++17", f"-gencode=arch=compute_{number},code=sm_{number}"),
            *("-lineinfo", "-Xptxas=-v", "-Wno-deprecated-gpu-targets"),
            *(f"-I{directory}" for directory in self._includes),
        )

    def _link_flags(self) -> tuple[str, ...]:
        directory = self._core.library_dir
        return (f"-L{directory}", f"-l{self._core.library_name}", f"-Wl,-rpath,{directory}", "-lpthread", "-ldl")

    def _compile(self, source: Path, scratch: Path) -> str:
        """source -> program.o, program.d, a .ptx and a .cubin. Returns the log. Raises ProgramDoesNotBuild."""
        done = _run(
            [
                *(str(self._toolkit.nvcc), "-ccbin", str(self._toolkit.host_compiler), *self._compile_flags()),
                *("--keep", "--keep-dir", str(scratch), "-MD", "-MF", "program.d"),
                *("-x", "cu", "-c", str(source.resolve()), "-o", "program.o"),
            ],
            scratch,
        )
        if not done.ok:
            match = re.search(r"^.*\b(?:fatal )?error\b.*$", done.text, re.MULTILINE)
            reason = match[0].strip()[:500] if match else f"the compiler {done.how}"
            raise _refused(f"{source} does not compile: {reason}", done.text)
        return done.text

    def _link(self, source: Path, scratch: Path) -> None:
        """program.o -> program. Raises ProgramDoesNotBuild and ProgramNotEmulatable."""
        done = _run([str(self._toolkit.host_compiler), "program.o", "-o", "program", *self._link_flags()], scratch)
        if done.ok:
            return
        undefined = list(dict.fromkeys(re.findall(r"undefined reference to [`']([^'`]+)'", done.text)))
        missing = missing_runtime_functions(undefined) or _missing_library(undefined)
        if missing:
            raise not_emulatable(source, missing, done.text)
        reason = f"undefined: {', '.join(undefined)}" if undefined else f"the linker {done.how}"
        raise _refused(f"{source} does not link: {reason}", done.text)


def not_emulatable(source: Path, reason: str, log: str) -> ProgramNotEmulatable:
    """The error for a program that needs what the emulator lacks."""
    return ProgramNotEmulatable(f"{source}: not emulatable: {reason}", hint=NOT_EMULATABLE_HINT, log=log)


def _refused(message: str, log: str) -> ProgramDoesNotBuild:
    hint = "see the compiler's messages; --include DIR adds a directory with headers"
    return ProgramDoesNotBuild(message, hint=hint, log=log)


def _run(argv: Sequence[str], scratch: Path) -> _ToolOutput:
    """Run a compiler, whose temporary files go to `scratch`, to its end; its messages are in English."""
    process = subprocess.Popen(
        argv,
        cwd=scratch,
        env={**os.environ, "LC_ALL": "C", "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=_COMPILE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return _ToolOutput(ok=False, text="", how="ran out of time")
    finally:
        if process.poll() is None:
            # nvcc's children go with it.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return _ToolOutput(ok=process.returncode == 0, text=text, how=f"exited with status {process.returncode}")


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
    return {str(path): _sha256(path) for path in sorted(own)}


def _publish(scratch: Path, names: Sequence[str], entry: Path) -> None:
    """Let others see the files of a built program, all or none."""
    staged = entry.with_suffix(".partial")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    for name in names:
        shutil.copy2(scratch / name, staged / name)
    shutil.rmtree(entry, ignore_errors=True)
    staged.rename(entry)


def _read_report(entry: Path) -> _BuildReport | None:
    """What was kept of an earlier build; None when there was none."""
    report = entry / "report.json"
    return decode(_BuildReport, json.loads(report.read_text(encoding="utf-8"))) if report.is_file() else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
