"""A real GPU as a `Device`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelblaster.devices.base import (
    Build,
    Candidate,
    Harness,
    Job,
    Profiler,
    SelfCheckingSession,
    Session,
    VariantSession,
)
from kernelblaster.devices.build.builder import CandidateBuilder
from kernelblaster.devices.build.policy import CandidatePolicy
from kernelblaster.devices.build.recipes import Recipes
from kernelblaster.devices.build.self_checking import SelfCheckingBuilder, find_libtorch
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda.facts import device_facts
from kernelblaster.devices.cuda.gpu_access import little_view, needs_helper, reaching_isolation, suffices_for_the_gpu
from kernelblaster.devices.cuda.lock import counter_lock, gpu_lock, gpu_shared
from kernelblaster.devices.cuda.monitor import Monitor
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.devices.cuda.profiler import Counters, CudaProfiler
from kernelblaster.devices.cuda.sanitizer import BANNER, INITCHECK, TOOLS, parse_report, sanitizer_command, tool_failure
from kernelblaster.devices.facts import DeviceFacts, GpuReading, Library
from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.devices.harness.self_checking_session import SelfCheckingProcess
from kernelblaster.devices.harness.session import ProcessSession, VariantsProcess
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import DeviceError, MachineError
from kernelblaster.paths import cache_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.sandbox.isolation import FileView, Isolation, strongest_working, weaker
from kernelblaster.sandbox.limits import Limits

_LOG = logging.getLogger(__name__)
_TRYING = threading.Lock()
"""Held while a program tries whether it reaches the GPU: one thread does so for all, for CUDA starts one at a time."""
FLUSH_FACTOR = 2
"""The flush writes this many times the L2 before each sample."""


class CudaDevice:
    """The first GPU of this machine. Satisfies `devices.base.Device`.

    Args:
        policy: what candidates may contain.
        limits: of each process of a candidate.
        jobs: compiles at once; 0 for no bound.
        cache: where harnesses and programs are kept; None: the user's cache.

    Raises:
        DeviceError: no GPU, or a driver too old for the nvcc found.
        ToolMissing: no nvcc or no host compiler.
    """

    def __init__(
        self, policy: CandidatePolicy, *, limits: Limits | None = None, jobs: int = 0, cache: Path | None = None
    ) -> None:
        gpu = detect_gpu()
        if gpu is None:
            raise DeviceError("no NVIDIA GPU was found", hint="see `kernelblaster doctor`, or use --device emulated")
        self._facts = device_facts(gpu)
        self._bounds = limits or Limits()
        self._cache = cache or cache_dir()
        self._jobs = jobs
        self._policy = policy
        self._tools = Toolchain.find()
        self._counters = Counters(self._tools.ncu)
        self._sanitizing: Isolation | None = None
        self._monitor = Monitor(gpu.uuid)
        if self._tools.version[0] > int(gpu.cuda_version.split(".")[0]):
            raise DeviceError(
                f"nvcc {self._tools.version_text} builds for a newer driver than {gpu.driver_version}, "
                f"which supports CUDA {gpu.cuda_version}",
                hint="update the NVIDIA driver, or put an older nvcc into PATH",
            )

    @property
    def facts(self) -> DeviceFacts:
        """What is known of the GPU."""
        return self._facts

    @property
    def isolation(self) -> Isolation:
        """How candidates are kept apart from this machine."""
        return self._isolation

    @cached_property
    def _isolation(self) -> Isolation:
        with _TRYING:
            return self._bounds.isolation or reaching_isolation(self._tools)

    @cached_property
    def _limits(self) -> Limits:
        """Of each process of a candidate; the isolation is one under which it reaches the GPU."""
        return replace(self._bounds, forks=needs_helper(), isolation=self._isolation)

    @property
    def _view(self) -> FileView:
        return FileView(readable=self._tools.directories)

    def _program_view(self, candidate: Candidate) -> FileView:
        """What a candidate's process sees when no tool runs it: no library that it may not link."""
        if candidate.libraries or not self._shows_little:
            return self._view
        return little_view(self._tools)

    @cached_property
    def _shows_little(self) -> bool:
        isolation = self._isolation
        with _TRYING:
            return suffices_for_the_gpu(self._tools, isolation)

    @property
    def _recipes(self) -> Recipes:
        """How programs are built that hold the CUDA runtime themselves."""
        return Recipes(self._tools, self._facts.compile_arch, self._tools.cudart_link_args, keep_ptx=False)

    @cached_property
    def _builder(self) -> CandidateBuilder:
        """Builds programs that load candidates. Raises MachineError where the runtime is no shared object."""
        shared = self._tools.cudart_shared_link_args
        if shared is None:
            raise MachineError(
                "the CUDA runtime is here as an archive alone, but harness and candidate must share it",
                hint="install libcudart.so beside nvcc (the nvidia-cuda-runtime wheel, or package cuda-cudart)",
            )
        recipes = replace(self._recipes, link_args=shared, deferred_loading=True)
        return CandidateBuilder(recipes, self._policy, self._cache, jobs=self._jobs)

    @cached_property
    def _self_checking_builder(self) -> SelfCheckingBuilder:
        return SelfCheckingBuilder(find_libtorch(), self._recipes, self._policy, self._cache, jobs=self._jobs)

    def _builder_of(self, problem: Problem) -> CandidateBuilder:
        return self._self_checking_builder if problem.weakly_verified else self._builder

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        """Compile the harness. Raises ProblemError."""
        return self._builder_of(problem).harness(problem, precision)

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile and link a candidate. Raises BuildFailure."""
        return self._builder_of(harness.problem).program(source, harness, libraries)

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start the candidate's process; it loads its inputs before the candidate is built. Raises RunFailure."""
        return ProcessSession(
            candidate,
            job,
            view=self._program_view(candidate),
            limits=self._limits,
            timeout_s=timeout_s,
            flush_bytes=self._flush_bytes,
        )

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> VariantSession:
        """Start one process for several candidates. Raises RunFailure."""
        return VariantsProcess(
            builds,
            job,
            view=self._program_view(builds[-1]),
            limits=self._limits,
            timeout_s=timeout_s,
            flush_bytes=self._flush_bytes,
        )

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        """Start the process of a candidate whose driver judges itself. Raises RunFailure."""
        return SelfCheckingProcess(
            build, view=self._view, limits=self._limits, timeout_s=timeout_s, flush_bytes=self._flush_bytes
        )

    @property
    def _flush_bytes(self) -> int:
        return FLUSH_FACTOR * self._facts.l2_bytes

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """ncu around a candidate's process; events alone where there is no ncu, or where it may not read counters."""
        return CudaProfiler(
            self, self._counters, candidate, job, view=self._view, limits=self._limits, timeout_s=timeout_s
        )

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        """memcheck, racecheck, initcheck and synccheck, side by side, each over a call in a process of its own.

        Empty when compute-sanitizer is missing.

        Where it does not work under the isolation of candidates, it runs under a weaker one, with a warning in the log.

        Raises RunFailure when the candidate fails and no tool says why, DeviceError when a tool fails.
        """
        if self._tools.sanitizer is None:
            return []
        sanitizer = self._tools.sanitizer
        # A driver of others copies memory of its own that it never wrote: no word on the candidate.
        weak = build.harness.problem.weakly_verified
        tools = [name for name in TOOLS if not (weak and name == INITCHECK)]
        alone = 0 if self._sanitizing is not None else 1  # it finds out under which isolation the others work

        def findings(tool: str) -> list[SanitizerFinding]:
            return self._sanitize_with(sanitizer, tool, build, job, timeout_s)

        found = [findings(tool) for tool in tools[:alone]]
        with ThreadPoolExecutor(len(tools), "sanitizer") as threads:
            found += threads.map(findings, tools[alone:])
        return list(chain.from_iterable(found))

    def _sanitize_with(
        self, sanitizer: Path, tool: str, build: Build, job: Job, timeout_s: float
    ) -> list[SanitizerFinding]:
        """Findings of one tool, under the strongest isolation that it works in."""
        levels = [self._sanitizing] if self._sanitizing is not None else weaker(self.isolation)
        found = strongest_working(
            levels, lambda level: self._sanitize_under(level, sanitizer, tool, build, job, timeout_s), DeviceError
        )
        self._sanitizing = found.level
        if found.refused:
            _LOG.warning("compute-sanitizer runs under %s: under %s %s", found.level, self.isolation, found.reason)
        return found.result

    def _sanitize_under(
        self, level: Isolation, sanitizer: Path, tool: str, build: Build, job: Job, timeout_s: float
    ) -> list[SanitizerFinding]:
        """Findings of one tool. Its report goes to a file: what the candidate prints cannot push it out of a tail."""
        with TemporaryDirectory(prefix="kernelblaster-") as scratch:
            log = Path(scratch) / "report.txt"
            failure = self._call_under(
                build,
                job,
                sanitizer_command(sanitizer, tool, log),
                view=self._view | FileView(writable=(log.parent,)),
                limits=replace(self._limits, isolation=level),
                timeout_s=timeout_s,
            )
            text = log.read_text(errors="replace") if log.exists() else ""
        if problem := tool_failure(text):
            raise DeviceError(f"compute-sanitizer {tool} failed: {problem}", hint="see `kernelblaster doctor`")
        if BANNER not in text:
            raise DeviceError(f"compute-sanitizer {tool} wrote no report", hint="see `kernelblaster doctor`")
        findings = parse_report(tool, text)
        if failure is not None and not findings:
            raise failure
        return findings

    @staticmethod
    def _call_under(
        build: Build, job: Job, wrapper: Sequence[str], view: FileView, limits: Limits, timeout_s: float
    ) -> RunFailure | None:
        """How one call in a process under a tool fails; None when it does not. Raises DeviceError."""
        try:
            with HarnessProcess(
                build, job, wrapper, view=view, limits=limits, timeout_s=timeout_s, contain=False
            ) as process:
                process.load()
                process.call(0)
                process.quit()
        except RunFailure as failure:
            return failure
        return None

    def reading(self) -> GpuReading | None:
        """SM clock and temperature now; None where the driver does not tell."""
        return self._monitor.read()

    def exclusive(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Hold this GPU alone among all processes of the machine; whether it is held."""
        return gpu_lock(self._facts.uuid or self._facts.name, wait=wait)

    def shared(self) -> AbstractContextManager[None]:
        """Use this GPU beside others of the machine, while nobody holds it alone."""
        return gpu_shared(self._facts.uuid or self._facts.name)

    def counting(self) -> AbstractContextManager[None]:
        """Have this GPU's counters: of two programs under ncu one fails, from its first kernel to its last."""
        return counter_lock(self._facts.uuid or self._facts.name)
