"""Turns a candidate's source into a program: compile, audit, localise, link. Shared by both devices.

The program is the harness', started while the candidate is being compiled, and the candidate a shared object that it
loads; for profilers each candidate is linked into a program of its own.

The candidate is a translation unit of its own. All its symbols but the launcher become local before it meets the
harness, so it can replace nothing of it; what it may define and ask for is audited on its object file.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from kernelblaster.cuda_source.features import machine_counts
from kernelblaster.cuda_source.launcher import LAUNCHER, find_declaration, names_launcher, with_visible_launcher
from kernelblaster.devices.base import Build, Harness
from kernelblaster.devices.build.elf import Symbols, check_shared_object, read_symbols
from kernelblaster.devices.build.policy import CandidatePolicy, CompiledCandidate
from kernelblaster.devices.build.ptxas import parse_resources
from kernelblaster.devices.build.recipes import COMPILER_LOG, INITIALISER, MACHINE_CODE, PROGRAM, Recipes
from kernelblaster.devices.build.symbols import (
    demangle,
    guarded,
    match_launcher,
)
from kernelblaster.devices.build.tools import (
    ToolStep,
    bounded,
    first_error,
    is_cut_off,
    run_tools,
    tool_output,
    undefined_reference,
)
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.errors import DeviceError, ProblemError
from kernelblaster.paths import (
    candidate_link_script,
    deferred_source,
    guards_source,
    harness_include_dir,
    initialise_source,
    program_source,
)
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.start import SHARED_PIECES
from kernelblaster.sandbox.limits import CommandResult
from kernelblaster.sandbox.process import Scratch

_FORMAT = "kernelblaster-build-8"
_MAIN = "main.o"
_CALLED = "kb_call_launcher"
"""What KB_DRIVER defines, and the program calls."""
_NAMES_PRECISION = re.compile(rb"KB_(?:FP16|FP32|BF16)|scalar_t")
"""A driver that mentions none of these compiles to the same object in every precision, as all of ours do."""


class CandidateBuilder:
    """Builds harnesses and candidates. Safe for many threads and processes over one cache.

    Args:
        recipes: how they are built.
        policy: what candidates may contain.
        cache_dir: where harnesses and programs are kept.
        jobs: compiles at once; 0 for no bound.
    """

    def __init__(self, recipes: Recipes, policy: CandidatePolicy, cache_dir: Path, *, jobs: int = 0) -> None:
        self._tools = recipes.tools
        self._policy = policy
        self._recipes = recipes
        self._cache = cache_dir
        self._slots = threading.BoundedSemaphore(jobs) if jobs else None

    def harness(self, problem: Problem, precision: Precision) -> Harness:
        """Compile `driver.cpp`, or take it from the cache.

        Raises:
            ProblemError: it cannot be read, does not compile, or does not call the launcher.
        """
        try:
            source = problem.driver_path.read_bytes()
        except OSError as error:
            raise ProblemError(f"cannot read {problem.driver_path}: {error}", hint="restore the problem") from error
        varies = precision if _NAMES_PRECISION.search(source) else "any precision"
        digest = _digest(_FORMAT, source, _harness_bytes(), varies, self._recipes.host_flags, self._host_identity())
        with self._entry("harnesses", digest) as entry:
            if not (entry / "harness.o").is_file():
                self._compile_harness(source, entry, problem, precision)
        symbol = self._launcher_symbol(entry / "harness.o", problem)
        harness = Harness(problem, precision, entry / "harness.o", symbol)
        return replace(harness, program=self._deferred_program(harness)) if self._recipes.deferred_loading else harness

    def program(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile a candidate and link it to its harness, or take the result from the cache.

        Raises:
            BuildFailure: it does not compile, does not define the launcher, or breaks the policy.
            ToolMissing: an allowed library is not installed.
        """
        started = time.monotonic()
        libraries = tuple(sorted(set(libraries)))
        digest = self._program_digest(source, harness, libraries)
        with self._entry("programs", digest) as entry:
            cached = (entry / "report.json").is_file()
            if not cached:
                self._build_program(source, harness, libraries, entry)
            report = json.loads((entry / "report.json").read_text())
        if "failure" in report:
            raise BuildFailure(BuildFailureKind(report["failure"]), report["reason"], report["log"])
        made = entry / self._recipes.target
        return Build(
            digest=digest,
            program=harness.program or made,
            library=made if harness.program else None,
            source_path=entry / "candidate.cu",
            harness=harness,
            resources=tuple(KernelResources.model_validate(item) for item in report["resources"]),
            seconds=0.0 if cached else time.monotonic() - started,
            ptx=entry / "candidate.ptx" if "candidate.ptx" in report["kept"] else None,
            cubin=entry / "candidate.cubin" if "candidate.cubin" in report["kept"] else None,
            hints=tuple(report["hints"]),
            own_streams=tuple(report["own_streams"]),
            libraries=libraries,
            machine=report["machine"],
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

    def _program_digest(self, source: str, harness: Harness, libraries: tuple[Library, ...]) -> str:
        return _digest(
            _FORMAT,
            source,
            harness.object_path.read_bytes(),
            _harness_bytes(),
            _shared_pieces() if SHARED_PIECES in source else b"",
            harness.precision,
            self._recipes.compile_flags(harness.precision),
            self._link_identity(libraries),
            str(self._recipes.keep_ptx),
            f"{self._tools.cuobjdump} {self._tools.nvdisasm}",
            str(self._recipes.deferred_loading),
            self._policy.version,
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
        for argument in self._recipes.link_args:
            path = Path(argument)
            parts.append(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else argument)
        return " ".join(parts)

    # ------------------------------------------------------------------ harness

    def _compile_harness(self, source: bytes, entry: Path, problem: Problem, precision: Precision) -> None:
        main = self._main_object()
        with Scratch() as scratch:
            (scratch / "driver.cpp").write_bytes(source)
            define = f"-DKB_{precision.upper()}"
            self._compile_host([*self._recipes.host_flags, define, "driver.cpp", "-o", "driver.o"], scratch, problem)
            self._launcher_symbol(scratch / "driver.o", problem)
            if _CALLED not in read_symbols(scratch / "driver.o").defined:
                raise ProblemError(f"{problem.driver_path} names no function to call", hint="name one in KB_DRIVER")
            joined = self._run([self._recipes.join("driver.o", str(main), into="harness.o")], scratch)
            if not joined.ok:
                raise ProblemError(_host_error(joined, problem), hint="define nothing else that others could see")
            self._publish(scratch, entry, ["harness.o"])

    def _main_object(self) -> Path:
        """The program that all drivers are linked to, compiled or taken from the cache. Raises DeviceError."""
        digest = _digest(_FORMAT, _harness_bytes(), self._recipes.host_flags, self._host_identity())
        with self._entry("main", digest) as entry:
            if not (entry / _MAIN).is_file():
                with Scratch() as scratch:
                    self._binutils(scratch, self._recipes.compile_main(_MAIN))
                    self._publish(scratch, entry, [_MAIN])
        return entry / _MAIN

    def _compile_host(self, arguments: Sequence[str], scratch: Path, problem: Problem) -> None:
        """Compile host code of a problem. Raises ProblemError."""
        outcome = self._run([ToolStep((str(self._tools.host_compiler), "-c", *arguments))], scratch)
        if not outcome.ok:
            raise ProblemError(
                _host_error(outcome, problem), hint=f"correct it; reference.py declares {_declared_names(problem)}"
            )

    def _launcher_symbol(self, harness_object: Path, problem: Problem) -> str:
        undefined = read_symbols(harness_object).undefined
        found = sorted(name for name in undefined if names_launcher(name))
        if len(found) != 1:
            raise ProblemError(f"{problem.driver_path} does not call {LAUNCHER}", hint="declare it and call it once")
        return found[0]

    def _deferred_program(self, harness: Harness) -> Path:
        """The harness' program without a candidate, linked or taken from the cache. Raises DeviceError."""
        sources = b"".join(path.read_bytes() for path in sorted(deferred_source().parent.iterdir()))
        parts = (_FORMAT, harness.object_path.read_bytes(), sources, self._link_identity(()), self._host_identity())
        with self._entry("deferred", _digest(*parts)) as entry:
            if not (entry / PROGRAM).is_file():
                with Scratch() as scratch:
                    self._binutils(scratch, *self._recipes.link_deferred(harness))
                    self._publish(scratch, entry, [PROGRAM, INITIALISER])
        return entry / PROGRAM

    # ------------------------------------------------------------------ candidate

    def _build_program(self, source: str, harness: Harness, libraries: tuple[Library, ...], entry: Path) -> None:
        """Fill the cache entry with a program or with the reason why there is none."""
        with Scratch() as scratch:
            (scratch / "candidate.cu").write_text(with_visible_launcher(source), encoding="utf-8")
            try:
                report = self._compile_and_link(scratch, source, harness, libraries)
                names = ["candidate.cu", self._recipes.target, "report.json", *report["kept"]]
            except BuildFailure as failure:
                report = {"failure": failure.kind, "reason": failure.reason, "log": failure.log}
                names = ["candidate.cu", "report.json"]
            (scratch / "report.json").write_text(json.dumps(report))
            (scratch / "candidate.cu").write_text(source, encoding="utf-8")
            self._publish(scratch, entry, names)

    def _compile_and_link(
        self, scratch: Path, source: str, harness: Harness, libraries: tuple[Library, ...]
    ) -> dict[str, Any]:
        self._policy.check_source(source)
        log = self._compile(scratch, source, harness, libraries)
        symbols = read_symbols(scratch / "candidate.o")
        contained = self._recipes.deferred_loading
        disassembly = "" if contained else tool_output(scratch / "candidate.dis")
        called_by = read_symbols(harness.object_path)
        findings = self._policy.check_object(
            CompiledCandidate(symbols, called_by, disassembly, frozenset(libraries), contained)
        )
        self._link(scratch, harness, libraries, symbols)
        kept = [name for name in ("candidate.ptx", "candidate.cubin") if self._take(scratch, name)]
        resources = parse_resources(log, lambda names: demangle(self._tools, names))
        listing = scratch / MACHINE_CODE
        return {
            "resources": [kernel.model_dump() for kernel in resources],
            "kept": kept,
            "hints": findings.hints,
            "own_streams": findings.own_streams,
            "machine": None if is_cut_off(listing) else machine_counts(tool_output(listing)),
        }

    def _compile(self, scratch: Path, source: str, harness: Harness, libraries: tuple[Library, ...]) -> str:
        """candidate.cu -> candidate.o. Returns what the compiler said. Raises BuildFailure."""
        compiling = self._recipes.compile(source, harness.precision, libraries, scratch)
        outcome = self._run([compiling, *self._recipes.list_machine_code(), *self._recipes.disassemble()], scratch)
        # Assemblers name files by their whole path, which tells nobody anything.
        said = (tool_output(scratch / COMPILER_LOG) or outcome.output).replace(f"{scratch}/", "")
        if outcome.ok and not is_cut_off(scratch / COMPILER_LOG):
            return said
        if outcome.ok:
            raise BuildFailure(BuildFailureKind.COMPILE, "the compiler says more of it than is read", bounded(said))
        reason = first_error(said) if outcome.exceeded is None else f"the compiler {outcome.describe()}"
        raise BuildFailure(BuildFailureKind.COMPILE, reason, bounded(said))

    def _link(self, scratch: Path, harness: Harness, libraries: tuple[Library, ...], symbols: Symbols) -> None:
        """candidate.o -> the program or shared object. Raises BuildFailure."""
        match = match_launcher(self._tools, symbols, harness.launcher_symbol, _declaration(harness.problem))
        guards = guarded(symbols)
        sealing, linking = self._recipes.seal(match, guards), self._recipes.link(harness, libraries, guards)
        outcome = self._run([*sealing, *linking], scratch)
        if not (scratch / "sealed.o").exists():
            raise BuildFailure(
                BuildFailureKind.LINK, f"binutils failed: it {outcome.describe()}", bounded(outcome.output)
            )
        left = read_symbols(scratch / "sealed.o").defined - {match.wanted}
        if left:
            raise BuildFailure(
                BuildFailureKind.POLICY, f"the candidate defines symbols that cannot be made its own: {sorted(left)[0]}"
            )
        if not outcome.ok:
            missing = undefined_reference(outcome.output)
            if missing:  # which says all that the linker has to say
                raise BuildFailure(BuildFailureKind.LINK, missing)
            raise BuildFailure(BuildFailureKind.LINK, f"the linker {outcome.describe()}", bounded(outcome.output))
        if self._recipes.deferred_loading:
            check_shared_object(scratch / self._recipes.target)

    def _take(self, scratch: Path, name: str) -> bool:
        """Whether a file that nvcc was asked to keep lies in `scratch`; it may be named after the architecture."""
        if not self._recipes.keep_ptx:
            return False
        found = sorted(scratch.glob(f"{Path(name).stem}*{Path(name).suffix}"))
        if not found:
            return False
        if found[0].name != name:
            found[0].rename(scratch / name)
        return True

    # ------------------------------------------------------------------ tools

    def _run(self, steps: Sequence[ToolStep], scratch: Path) -> CommandResult:
        with self._slots or nullcontext():
            return run_tools(self._tools, steps, scratch)

    def _binutils(self, scratch: Path, *steps: ToolStep) -> None:
        """Run tools that cannot fail for a candidate's or a problem's sake. Raises DeviceError."""
        outcome = self._run(steps, scratch)
        if not outcome.ok:
            name = Path(steps[0].argv[0]).name
            raise DeviceError(f"{name} {outcome.describe()}: {outcome.output[-500:]}", hint=f"check {name}")


def _digest(*parts: str | bytes | Sequence[str]) -> str:
    """SHA-256 over parts with their lengths, so that no two lists of parts read the same."""
    state = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str | bytes) else "\0".join(part)
        data = text if isinstance(text, bytes) else text.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def _shared_pieces() -> bytes:
    """Headers for kernels, which the harness does not include."""
    files = sorted((harness_include_dir() / SHARED_PIECES).glob("*.cuh"))
    return b"".join(path.read_bytes() for path in files)


def _harness_bytes() -> bytes:
    files = [path for path in sorted((harness_include_dir() / "kernelblaster").glob("*")) if path.is_file()]
    return b"".join(
        path.read_bytes()
        for path in (
            *(*files, program_source(), guards_source()),
            *(deferred_source(), initialise_source(), candidate_link_script()),
        )
    )


def _host_error(outcome: CommandResult, problem: Problem) -> str:
    """Why a driver does not compile, on one line that begins with its place."""
    if outcome.exceeded is not None:
        return f"{problem.driver_path}: the compiler {outcome.describe()}"
    said = first_error(outcome.output)
    return (
        said.replace("driver.cpp:", f"{problem.driver_path}:", 1)
        if "driver.cpp:" in said
        else (f"{problem.driver_path} does not compile: {said}")
    )


def _declared_names(problem: Problem) -> str:
    """What a driver may ask for that is known without running the reference."""
    sizes = next(iter(problem.workloads.values()), {})
    kinds = {"outputs": problem.outputs, "sizes": sizes, "scalars": problem.scalars}
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names)


def _declaration(problem: Problem) -> str:
    """The launcher's declaration as driver.cpp spells it."""
    text = problem.driver_path.read_text(encoding="utf-8")
    return find_declaration(text) or f"void {LAUNCHER}(...);"
