"""Turns a candidate's source into a program: compile, audit, localise, link. Shared by both devices.

On a GPU the program is the driver's, started while the candidate is being compiled, and the candidate a shared object
that it loads; on the emulated device each candidate is linked into a program of its own.

The candidate is a translation unit of its own. All its symbols but the launcher become local before it meets the
driver, so it can replace nothing of the harness; what it may define and ask for is audited on its object file.
Results, failures too, lie in a content-addressed cache: the key covers every byte and flag that went in.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from kernelblaster.devices.base import Build, BuildFailure, BuildFailureKind, Driver, KernelResources, Library
from kernelblaster.devices.ptxas import parse_resources
from kernelblaster.devices.sandbox import Outcome, Scratch
from kernelblaster.devices.source_policy import check_source, forgive, forgotten_headers
from kernelblaster.devices.symbols import (
    LAUNCHER,
    Symbols,
    check_instructions,
    check_policy,
    demangle,
    guarded,
    list_symbols,
    match_launcher,
    parse_symbols,
    read_symbols,
)
from kernelblaster.devices.toolchain import Toolchain
from kernelblaster.devices.tools import (
    Step,
    bounded,
    first_error,
    run_tool,
    run_tools,
    tool_output,
    undefined_reference,
)
from kernelblaster.errors import DeviceError, ProblemError
from kernelblaster.paths import guards_source, harness_include_dir, late_source
from kernelblaster.problems.problem import Precision, Problem

_FORMAT = "kernelblaster-build-3"
_PROGRAM, _LIBRARY = "program", "candidate.so"
_HARDENED = ("-Wl,-z,relro,-z,now,-z,noexecstack",)


@dataclass(frozen=True)
class BuildOptions:
    """How programs are built.

    Attributes:
        compile_arch: what nvcc compiles for, e.g. `sm_90a`.
        link_args: the CUDA runtime to link, e.g. the real one's archive or `-L... -lkbcudart`.
        keep_ptx: whether `Build.ptx` and `Build.cubin` are wanted; costs nothing to run and a little to build.
        jobs: compiles at once; 0 for no bound.
        late: whether drivers become programs that load candidates, which are shared objects then; the runtime must be
            one, too, for both to share it.
    """

    compile_arch: str
    link_args: tuple[str, ...]
    keep_ptx: bool = True
    jobs: int = 0
    late: bool = False


class ProgramBuilder:
    """Builds drivers and candidates. Safe for many threads and processes over one cache.

    Args:
        toolchain: compilers.
        cache_dir: where drivers and programs are kept.
        compile_arch, link_args, keep_ptx, jobs, late: see `BuildOptions`.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        cache_dir: Path,
        compile_arch: str,
        link_args: Sequence[str],
        *,
        keep_ptx: bool = True,
        jobs: int = 0,
        late: bool = False,
    ) -> None:
        self._tools = toolchain
        self._cache = cache_dir
        self._options = BuildOptions(compile_arch, tuple(link_args), keep_ptx, jobs, late)
        self._slots = threading.BoundedSemaphore(jobs) if jobs else None

    def driver(self, problem: Problem, precision: Precision) -> Driver:
        """Compile `driver.cpp`, or take it from the cache.

        Raises:
            ProblemError: it cannot be read, does not compile, or does not call the launcher.
        """
        try:
            source = problem.driver_path.read_bytes()
        except OSError as error:
            raise ProblemError(f"cannot read {problem.driver_path}: {error}", cure="restore the problem") from error
        digest = _digest(_FORMAT, source, _harness_bytes(), precision, self._host_flags(), self._host_identity())
        with self._entry("drivers", digest) as entry:
            if not (entry / "driver.o").is_file():
                self._compile_driver(source, entry, problem, precision)
        symbol = self._launcher_symbol(entry / "driver.o", problem)
        driver = Driver(problem, precision, entry / "driver.o", symbol)
        return replace(driver, program=self._late_program(driver)) if self._options.late else driver

    def program(self, source: str, driver: Driver, libraries: Sequence[Library] = ()) -> Build:
        """Compile a candidate and link it to its driver, or take the result from the cache.

        Raises:
            BuildFailure: it does not compile, does not define the launcher, or breaks the policy.
            ToolMissing: an allowed library is not installed.
        """
        started = time.monotonic()
        libraries = tuple(sorted(set(libraries)))
        digest = self._program_digest(source, driver, libraries)
        with self._entry("programs", digest) as entry:
            cached = (entry / "report.json").is_file()
            if not cached:
                self._build_program(source, driver, libraries, entry)
            report = json.loads((entry / "report.json").read_text())
        if "failure" in report:
            raise BuildFailure(BuildFailureKind(report["failure"]), report["reason"], report["log"])
        late = driver.program is not None
        return Build(
            digest=digest,
            program=driver.program or entry / _PROGRAM,
            library=entry / _LIBRARY if late else None,
            source_path=entry / "candidate.cu",
            driver=driver,
            resources=tuple(KernelResources.model_validate(item) for item in report["resources"]),
            seconds=0.0 if cached else time.monotonic() - started,
            ptx=entry / "candidate.ptx" if "candidate.ptx" in report["kept"] else None,
            cubin=entry / "candidate.cubin" if "candidate.cubin" in report["kept"] else None,
        )

    # ------------------------------------------------------------------ cache

    @contextmanager
    def _entry(self, kind: str, digest: str) -> Iterator[Path]:
        """The cache directory of a digest, locked against other builders of the same thing."""
        entry = self._cache / kind / digest[:2] / digest
        entry.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(entry.with_suffix(".lock")):
            yield entry

    def _publish(self, scratch: Path, entry: Path, names: Sequence[str]) -> None:
        """Move finished files into the cache, all at once."""
        staged = entry.with_suffix(".partial")
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        for name in names:
            shutil.copy2(scratch / name, staged / name)
        shutil.rmtree(entry, ignore_errors=True)
        staged.rename(entry)

    def _program_digest(self, source: str, driver: Driver, libraries: tuple[Library, ...]) -> str:
        return _digest(
            _FORMAT,
            source,
            driver.object_path.read_bytes(),
            _harness_bytes(),
            driver.precision,
            self._compile_flags(driver.precision),
            self._link_identity(libraries),
            str(self._options.keep_ptx),
            str(self._options.late),
            self._tools.version_text,
            self._host_identity(),
        )

    def _host_identity(self) -> str:
        """The host compiler, without asking it: path, size and time of change."""
        info = self._tools.host_compiler.stat()
        return f"{self._tools.host_compiler} {info.st_size} {info.st_mtime_ns} {self._tools.root}"

    def _link_identity(self, libraries: tuple[Library, ...]) -> str:
        """Link arguments with the content of the archives among them, and the allowed libraries."""
        parts = [f"{library}" for library in libraries]
        for argument in self._options.link_args:
            path = Path(argument)
            parts.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else argument)
        return " ".join(parts)

    # ------------------------------------------------------------------ driver

    def _host_flags(self) -> tuple[str, ...]:
        includes = (f"-I{path}" for path in (harness_include_dir(), *self._tools.include_dirs))
        return ("-O2", "-std=c++17", "-fno-gnu-unique", *includes)

    def _compile_driver(self, source: bytes, entry: Path, problem: Problem, precision: Precision) -> None:
        with Scratch() as scratch:
            (scratch / "driver.cpp").write_bytes(source)
            define = f"-DKB_{precision.upper()}"
            self._compile_host([*self._host_flags(), define, "driver.cpp", "-o", "driver.o"], scratch, problem)
            self._publish(scratch, entry, ["driver.o"])

    def _compile_host(self, arguments: Sequence[str], scratch: Path, problem: Problem) -> None:
        """Compile host code of a problem. Raises ProblemError."""
        outcome = self._run([str(self._tools.host_compiler), "-c", *arguments], scratch)
        if not outcome.ok:
            raise ProblemError(
                f"{problem.driver_path} does not compile: it {outcome.describe()}\n{bounded(outcome.output)}",
                cure="see the compiler's message",
            )

    def _launcher_symbol(self, driver_object: Path, problem: Problem) -> str:
        undefined = read_symbols(self._tools, str(driver_object)).undefined
        found = sorted(name for name in undefined if LAUNCHER in name)
        if len(found) != 1:
            raise ProblemError(f"{problem.driver_path} does not call {LAUNCHER}", cure="declare it and call it once")
        return found[0]

    def _late_program(self, driver: Driver) -> Path:
        """The driver's program without a candidate, linked or taken from the cache. Raises DeviceError."""
        parts = (_FORMAT, driver.object_path.read_bytes(), late_source().read_bytes(), self._link_identity(()))
        with self._entry("late", _digest(*parts, self._host_identity())) as entry:
            if not (entry / _PROGRAM).is_file():
                with Scratch() as scratch:
                    self._link_late(driver, scratch)
                    self._publish(scratch, entry, [_PROGRAM])
        return entry / _PROGRAM

    def _link_late(self, driver: Driver, scratch: Path) -> None:
        launcher = f'-DKB_LAUNCHER="{driver.launcher_symbol}"'
        objects = [str(driver.object_path), "late.o"]
        compiler = str(self._tools.host_compiler)
        self._binutils(
            scratch,
            Step((compiler, *self._host_flags(), launcher, "-c", str(late_source()), "-o", "late.o")),
            Step((compiler, *objects, "-o", _PROGRAM, *_HARDENED, *self._options.link_args, "-ldl")),
        )

    # ------------------------------------------------------------------ candidate

    def _build_program(self, source: str, driver: Driver, libraries: tuple[Library, ...], entry: Path) -> None:
        """Fill the cache entry with a program or with the reason why there is none."""
        with Scratch() as scratch:
            (scratch / "candidate.cu").write_text(forgive(source), encoding="utf-8")
            try:
                report = self._compile_and_link(scratch, source, driver, libraries)
                names = ["candidate.cu", self._target, "report.json", *report["kept"]]
            except BuildFailure as failure:
                report = {"failure": failure.kind, "reason": failure.reason, "log": failure.log}
                names = ["candidate.cu", "report.json"]
            (scratch / "report.json").write_text(json.dumps(report))
            (scratch / "candidate.cu").write_text(source, encoding="utf-8")
            self._publish(scratch, entry, names)

    def _compile_and_link(
        self, scratch: Path, source: str, driver: Driver, libraries: tuple[Library, ...]
    ) -> dict[str, Any]:
        check_source(source)
        log = self._compile(scratch, source, driver, libraries)
        guards = self._localise(scratch, driver, libraries)
        self._link(scratch, driver, libraries, self._compile_guards(scratch, guards))
        kept = [name for name in ("candidate.ptx", "candidate.cubin") if self._take(scratch, name)]
        resources = parse_resources(log, lambda names: demangle(self._tools, names))
        return {"resources": [item.model_dump() for item in resources], "kept": kept}

    @property
    def _target(self) -> str:
        """Name of what a candidate becomes."""
        return _LIBRARY if self._options.late else _PROGRAM

    def _compile_flags(self, precision: Precision) -> tuple[str, ...]:
        number = self._options.compile_arch.removeprefix("sm_")
        return (
            "-O3",
            "-std=c++17",
            f"-gencode=arch=compute_{number},code=sm_{number}",
            "-lineinfo",
            "-Xptxas=-v",
            # Unique symbols stay global whatever objcopy is told.
            "-Xcompiler=-fno-gnu-unique",
            *(("-Xcompiler=-fPIC",) if self._options.late else ()),
            "-Wno-deprecated-gpu-targets",
            f"-DKB_{precision.upper()}",
        )

    def _compile(self, scratch: Path, source: str, driver: Driver, libraries: tuple[Library, ...]) -> str:
        """candidate.cu -> candidate.o. Returns what the compiler said, ptxas' report included."""
        own = [f"-I{path}" for library in libraries for path in self._tools.library(library).include_dirs]
        headers = [flag for header in forgotten_headers(source) for flag in ("-include", header)]
        keep = ["--keep", "--keep-dir", str(scratch)] if self._options.keep_ptx else []
        outcome = self._run(
            [
                # Two threads: host and device code are compiled side by side.
                *(str(self._tools.nvcc), "--threads=2", "-ccbin", str(self._tools.host_compiler)),
                *self._compile_flags(driver.precision),
                *(f"-I{harness_include_dir()}", *own, *headers, *keep),
                *("-c", "candidate.cu", "-o", "candidate.o"),
            ],
            scratch,
        )
        if outcome.broken is not None:
            raise BuildFailure(BuildFailureKind.COMPILE, f"the compiler {outcome.describe()}", bounded(outcome.output))
        if not outcome.ok:
            raise BuildFailure(BuildFailureKind.COMPILE, first_error(outcome.output), bounded(outcome.output))
        return outcome.output

    def _localise(self, scratch: Path, driver: Driver, libraries: tuple[Library, ...]) -> list[str]:
        """candidate.o -> sealed.o, whose only global symbol is the launcher. Returns the guarded functions it calls.

        Raises BuildFailure.
        """
        symbols = self._audit(scratch, driver, libraries)
        guards = guarded(symbols)
        match = match_launcher(self._tools, symbols, driver.launcher_symbol, _declaration(driver.problem))
        rename = [f"--redefine-sym={name}=kb_guard_{function}" for name, function in guards.items()]
        if match.symbol != match.wanted:
            rename.append(f"--redefine-sym={match.symbol}={match.wanted}")
        ld, objcopy = str(self._tools.ld), str(self._tools.objcopy)
        self._binutils(
            scratch,
            # COMDAT groups are dissolved first: the linker merges them by name with the driver's, and a symbol that was
            # made local would be left pointing into the copy that it threw away.
            Step((ld, "-r", "--force-group-allocation", "candidate.o", "-o", "whole.o")),
            Step((objcopy, f"--keep-global-symbol={match.symbol}", "whole.o")),
            Step((objcopy, *rename, "whole.o", "sealed.o")),
            Step((*list_symbols(self._tools, "sealed.o"),), "sealed.nm"),
        )
        left = parse_symbols(tool_output(scratch / "sealed.nm")).defined - {match.wanted}
        if left:
            raise BuildFailure(
                BuildFailureKind.POLICY, f"the candidate defines symbols that cannot be made its own: {sorted(left)[0]}"
            )
        return sorted(set(guards.values()))

    def _audit(self, scratch: Path, driver: Driver, libraries: tuple[Library, ...]) -> Symbols:
        """Symbols of candidate.o. Raises BuildFailure when it defines, asks for or does what it may not."""
        self._binutils(
            scratch,
            Step((*list_symbols(self._tools, "candidate.o"),), "candidate.nm"),
            Step((str(self._tools.objdump), "-d", "candidate.o"), "candidate.dis"),
        )
        symbols = parse_symbols(tool_output(scratch / "candidate.nm"))
        check_policy(symbols, read_symbols(self._tools, str(driver.object_path)), libraries)
        check_instructions(tool_output(scratch / "candidate.dis"))
        return symbols

    def _compile_guards(self, scratch: Path, functions: list[str]) -> list[str]:
        """guards.o with the stand-ins of some functions; nothing for a candidate that calls none."""
        if not functions:
            return []
        defines = [f"-DKB_GUARD_{function}" for function in functions]
        flags = (*self._host_flags(), "-fPIC", "-Wno-deprecated-declarations")
        compiler = [str(self._tools.host_compiler), *flags, *defines]
        self._binutils(scratch, Step((*compiler, "-c", str(guards_source()), "-o", "guards.o")))
        return ["guards.o"]

    def _link(self, scratch: Path, driver: Driver, libraries: tuple[Library, ...], guards: list[str]) -> None:
        extra = [argument for library in libraries for argument in self._tools.library(library).link_args]
        # What a shared object asks for is looked for now, as it would be for a program.
        with_driver = ["-shared", "-Wl,-z,defs"] if self._options.late else [str(driver.object_path)]
        outcome = self._run(
            [
                *(str(self._tools.host_compiler), *with_driver, "sealed.o", *guards, "-o", self._target),
                # Code that an object brings for the linker to compile was not audited.
                "-fno-use-linker-plugin",
                *(*_HARDENED, "-Wl,--as-needed", *extra, *self._options.link_args),
            ],
            scratch,
        )
        if not outcome.ok:
            reason = undefined_reference(outcome.output) or f"the linker {outcome.describe()}"
            raise BuildFailure(BuildFailureKind.LINK, reason, bounded(outcome.output))

    def _take(self, scratch: Path, name: str) -> bool:
        """Whether a file that nvcc was asked to keep lies in `scratch`; it may be named after the architecture."""
        if not self._options.keep_ptx:
            return False
        found = sorted(scratch.glob(f"{Path(name).stem}*{Path(name).suffix}"))
        if not found:
            return False
        if found[0].name != name:
            found[0].rename(scratch / name)
        return True

    # ------------------------------------------------------------------ tools

    def _run(self, argv: Sequence[str], scratch: Path) -> Outcome:
        with self._slots or nullcontext():
            return run_tool(self._tools, argv, scratch)

    def _binutils(self, scratch: Path, *steps: Step) -> None:
        """Run tools one after the other in one fence, which costs more to put up than most of them take."""
        with self._slots or nullcontext():
            outcome = run_tools(self._tools, steps, scratch)
        if not outcome.ok:
            name = Path(steps[0].argv[0]).name
            raise DeviceError(f"{name} {outcome.describe()}: {outcome.output[-500:]}", cure="check binutils")


def _digest(*parts: str | bytes | Sequence[str]) -> str:
    """SHA-256 over parts with their lengths, so that no two lists of parts read the same."""
    state = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str | bytes) else "\0".join(part)
        data = text if isinstance(text, bytes) else text.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def _harness_bytes() -> bytes:
    files = [path for path in sorted(harness_include_dir().rglob("*")) if path.is_file()]
    return b"".join(path.read_bytes() for path in (*files, guards_source(), late_source()))


def _declaration(problem: Problem) -> str:
    """The launcher's declaration as driver.cpp spells it."""
    text = problem.driver_path.read_text(encoding="utf-8")
    match = re.search(rf"\bvoid\s+{LAUNCHER}\s*\([^)]*\)\s*;", text)
    return " ".join(match[0].split()) if match else f"void {LAUNCHER}(...);"
