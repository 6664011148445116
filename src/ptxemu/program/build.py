"""Builds a self-contained CUDA program for the emulated device, and keeps it until a file that it includes changes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from kernelblaster.devices.build.symbols import demangle
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import COMPILE_TIMEOUT_S, COMPILER_LIMITS, first_error, undefined_reference
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.limits import CommandResult
from kernelblaster.sandbox.process import Scratch, clean_environment, run
from ptxemu.core.build import Core
from ptxemu.machine.ptxas import parse_resources
from ptxemu.program.modules import missing_runtime_function

_FORMAT = "kernelblaster-emulated-program-2"
_LIBRARIES = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvrtc", "cu")


@dataclass(frozen=True)
class BuiltProgram:
    """A program that can be started, its PTX and machine code, and what ptxas said of its kernels."""

    program: Path
    ptx: Path
    cubin: Path
    resources: tuple[KernelResources, ...]


class ProgramBuilder:
    """Compiles and links programs.

    Args:
        toolchain: nvcc and the host compiler.
        core: the stand-in runtime to link, which may still be built.
        built: returns when the core is.
        compile_arch: what nvcc compiles for, e.g. `sm_90a`.
        include_dirs: directories searched for headers, beside the program's own.
        cache_dir: where built programs are kept.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        core: Core,
        built: Callable[[], object],
        compile_arch: str,
        include_dirs: Sequence[Path],
        cache_dir: Path,
    ) -> None:
        self._tools = toolchain
        self._core = core
        self._core_built = built
        self._arch = compile_arch
        self._includes = tuple(directory.resolve() for directory in include_dirs)
        self._cache = cache_dir / "emulated-programs"

    def build(self, source: Path) -> BuiltProgram:
        """Compile and link, or take from the cache.

        Raises:
            BuildFailure: it does not compile, or asks for something that the emulated device lacks.
        """
        source = source.resolve()
        key = [_FORMAT, str(source), *self._compile_flags(), *self._link_flags(), self._tools.version_text]
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
        entry = self._cache / digest[:2] / digest
        entry.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(entry.with_suffix(".lock")):
            if not _current(entry):
                self._build(source, entry)
            report = json.loads((entry / "report.json").read_text(encoding="utf-8"))
        resources = tuple(KernelResources.model_validate(item) for item in report["resources"])
        return BuiltProgram(entry / "program", entry / "program.ptx", entry / "program.cubin", resources)

    def _build(self, source: Path, entry: Path) -> None:
        with Scratch() as scratch:
            log = self._compile(source, scratch)
            self._core_built()
            self._link(scratch)
            resources = parse_resources(log, lambda names: demangle(self._tools, names))
            report = {
                "dependencies": _dependencies(scratch / "program.d", self._tools.include_dirs),
                "resources": [item.model_dump() for item in resources],
            }
            (scratch / "report.json").write_text(json.dumps(report), encoding="utf-8")
            for kept in (".ptx", ".cubin"):
                next(scratch.glob(f"*{kept}")).rename(scratch / f"program{kept}")
            staged = entry.with_suffix(".partial")
            shutil.rmtree(staged, ignore_errors=True)
            staged.mkdir()
            for name in ("program", "program.ptx", "program.cubin", "report.json"):
                shutil.copy2(scratch / name, staged / name)
            shutil.rmtree(entry, ignore_errors=True)
            staged.rename(entry)

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
        """source -> program.o, program.d and one .ptx. Returns the log with ptxas' report. Raises BuildFailure."""
        outcome = self._run(
            [
                *(str(self._tools.nvcc), "-ccbin", str(self._tools.host_compiler), *self._compile_flags()),
                *("--keep", "--keep-dir", str(scratch), "-MD", "-MF", "program.d"),
                *("-x", "cu", "-c", str(source), "-o", "program.o"),
            ],
            scratch,
        )
        if not outcome.ok:
            reason = first_error(outcome.output) if outcome.exceeded is None else f"the compiler {outcome.describe()}"
            raise BuildFailure(BuildFailureKind.COMPILE, reason, outcome.output)
        return outcome.output

    def _link(self, scratch: Path) -> None:
        compiler = str(self._tools.host_compiler)
        outcome = self._run([compiler, "program.o", "-o", "program", *self._link_flags()], scratch)
        if outcome.ok:
            return
        reason = undefined_reference(outcome.output) or f"the linker {outcome.describe()}"
        failure = BuildFailure(BuildFailureKind.LINK, reason, outcome.output)
        raise missing_runtime_function(failure) or _missing_library(failure) or failure

    def _run(self, argv: Sequence[str], scratch: Path) -> CommandResult:
        environment = clean_environment(scratch, {"LC_ALL": "C"})
        # The user's own program: its headers lie wherever it says.
        limits = replace(COMPILER_LIMITS, isolation=Isolation.LIMITS)
        return run(argv, timeout_s=COMPILE_TIMEOUT_S, limits=limits, cwd=scratch, environment=environment)


def _missing_library(failure: BuildFailure) -> BuildFailure | None:
    """The failure of a program that calls GPU libraries, which come without PTX; else None."""
    names = failure.reason.removeprefix("undefined: ").split(", ")
    if not all(name.startswith(_LIBRARIES) for name in names):
        return None
    return BuildFailure(BuildFailureKind.NOT_EMULATABLE, f"the emulated device has no {', '.join(names)}", failure.log)


def _dependencies(rules: Path, system: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of every file that the program includes, without those of the toolkit and the system."""
    words = re.findall(r"(?:[^\s\\]|\\.)+", rules.read_text(encoding="utf-8").replace("\\\n", " ").partition(":")[2])
    paths = {Path(re.sub(r"\\(.)", r"\1", word)).resolve() for word in words}
    own = (path for path in paths if not any(path.is_relative_to(root) for root in (*system, Path("/usr"))))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(own)}


def _current(entry: Path) -> bool:
    """Whether the entry was built from what its files hold now."""
    report = entry / "report.json"
    if not report.is_file():
        return False
    dependencies = json.loads(report.read_text(encoding="utf-8"))["dependencies"]
    return all(
        Path(path).is_file() and hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest
        for path, digest in dependencies.items()
    )
