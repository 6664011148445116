"""The emulated device: the real nvcc compiles, a CPU executes the PTX, a model says how long a GPU would take.

Outputs are computed, counts are counted, only times are modelled; everything carries `source=emulated`. The model is
deterministic, so one counted call per program and job shape is all there is to measure: it feeds samples and
profile alike. What a GPU would refuse (out-of-bounds access, a block that fits no SM) fails here, too.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypeVar

from kernelblaster.devices.base import (
    Build,
    CallResult,
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
from kernelblaster.devices.build.symbols import demangle
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.emulated.counted_calls import Counted, CountedCalls
from kernelblaster.devices.emulated.emulator import DEFAULT_GPU, built_core, gpu_named
from kernelblaster.devices.emulated.own_report import MOST_REPORT_BYTES, OwnReport
from kernelblaster.devices.emulated.profiler import EmulatedProfiler
from kernelblaster.devices.emulated.session import EmulatedSession, EmulatedVariants
from kernelblaster.devices.emulated.translation import (
    device_facts,
    ptxas_resources,
    sanitizer_finding,
)
from kernelblaster.devices.facts import DeviceFacts, Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind, RunFailure, RunFailureKind
from kernelblaster.devices.harness.libraries import runtime_libraries
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.errors import DeviceError
from kernelblaster.paths import cache_dir, harness_include_dir
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.self_checking import needs_a_gpu
from kernelblaster.sandbox.isolation import FileView, Isolation, SystemView
from kernelblaster.sandbox.limits import Limits
from kernelblaster.sandbox.process import strongest
from ptxemu.checks.findings import FindingKind, named
from ptxemu.core.build import BuiltCore
from ptxemu.counters.record import CountedRecord
from ptxemu.counters.report import NotSampled
from ptxemu.errors import ProgramNotEmulatable
from ptxemu.model.architecture import GpuModel
from ptxemu.model.call import CallEstimate
from ptxemu.program.modules import ensure_figures, ensure_module, missing_runtime_functions, module_path

Used = TypeVar("Used")
_ENDING_S = 5.0
"""What a process may take for its end once everything is known of it: handlers of a candidate run there."""


class EmulatedDevice:
    """A GPU that is not there. Satisfies `devices.base.Device`.

    Args:
        gpu: the GPU to stand for.
        toolchain: nvcc and the host compiler.
        policy: what candidates may contain.
        limits: of each process of a candidate.
        threads: CPU threads that execute one kernel.
        cache_root: where harnesses, programs, modules and the core are kept.
        jobs: compiles at once; 0 for no bound.
    """

    def __init__(
        self,
        gpu: GpuModel,
        toolchain: Toolchain,
        policy: CandidatePolicy,
        *,
        limits: Limits,
        threads: int,
        cache_root: Path,
        jobs: int = 0,
    ) -> None:
        self._gpu = gpu
        self._policy = policy
        self._toolchain = toolchain
        self._limits = limits
        self._threads = threads
        self._cache = cache_root
        self._jobs = jobs
        self._calls = CountedCalls(gpu, self._count)

    @classmethod
    def create(
        cls,
        gpu: str = DEFAULT_GPU,
        *,
        policy: CandidatePolicy,
        limits: Limits | None = None,
        cache_root: Path | None = None,
        jobs: int = 0,
    ) -> Self:
        """A device that stands for `gpu`, a name of `architectures.json`, with the tools of this machine.

        Raises:
            UsageError: the GPU is not known.
            ToolMissing: no nvcc or no host compiler.
        """
        return cls(
            gpu_named(gpu),
            Toolchain.find(),
            policy,
            limits=limits or Limits(),
            threads=os.cpu_count() or 1,
            cache_root=cache_root or cache_dir(),
            jobs=jobs,
        )

    @cached_property
    def facts(self) -> DeviceFacts:
        """Figures of the GPU that is modelled, and the version of the nvcc that compiles for it."""
        return device_facts(self._gpu, self._toolchain.version_text)

    @property
    def isolation(self) -> Isolation:
        """How candidates are kept apart from this machine."""
        return self._limits.isolation or strongest().level

    @cached_property
    def _core(self) -> BuiltCore:
        return built_core(self._cache)

    @cached_property
    def _builder(self) -> CandidateBuilder:
        link = (f"-L{self._core.library_dir}", f"-l{self._core.library_name}", f"-Wl,-rpath,{self._core.library_dir}")
        recipes = Recipes(self._toolchain, self._gpu.architecture.compile_arch, link, deferred_loading=True)
        return CandidateBuilder(recipes, self._policy, self._cache, jobs=self._jobs)

    def prepare(self, problem: Problem, precision: Precision) -> Harness:
        """Compile the harness. Raises DeviceError, and UsageError for one that judges itself."""
        if problem.weakly_verified:
            raise needs_a_gpu(problem)
        return self._builder.harness(problem, precision)

    def build(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """Compile, link, and assemble the PTX for the emulator.

        Libraries are GPU code that comes without PTX: a candidate may name them, but one that links them is not
        emulatable.

        Raises BuildFailure.
        """
        if libraries and any(header in source for header in ("cublas", "cudnn")):
            raise BuildFailure(BuildFailureKind.NOT_EMULATABLE, "the emulated device has no cuBLAS and no cuDNN")
        try:
            build = self._builder.program(source, harness, ())
        except BuildFailure as failure:
            raise _missing_in_runtime(failure) or failure from failure
        self._assemble(build)
        return build

    def open(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Session:
        """Start the candidate's process, in which warps and blocks take turns. Raises RunFailure.

        Calls that are counted run in a process of their own, in the default order: a candidate whose threads race has
        to be right in both.
        """
        build = candidate.built()
        env = self._environment(build) | {"PTXEMU_SCHEDULE": str(_schedule(build, job))}
        view = self._view(build)
        process = ProcessSession(build, job, env=env, view=view, limits=self._limits, timeout_s=timeout_s)
        return EmulatedSession(process, lambda perturbation: self._calls.run(build, job, timeout_s, perturbation))

    def open_variants(self, builds: Sequence[Build], job: Job, *, timeout_s: float) -> VariantSession:
        """Modelled times of several candidates, each counted in a process of its own."""
        return EmulatedVariants([partial(self.counted, build, job, timeout_s=timeout_s) for build in builds])

    def open_self_checking(self, build: Build, *, timeout_s: float) -> SelfCheckingSession:
        """Raises UsageError: PyTorch's kernels are not emulated."""
        raise needs_a_gpu(build.harness.problem)

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        """Counts of one warmed call and the model's times."""
        return EmulatedProfiler(self._gpu, lambda: self.counted(candidate.built(), job, timeout_s=timeout_s))

    def counted(self, build: Build, job: Job, *, timeout_s: float) -> CallEstimate:
        """One warmed call as it was counted, which happens once per program and shape. Raises RunFailure."""
        return self._calls.estimate(build, job, timeout_s=timeout_s)

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        """Run one call under the emulator's checks of memory, races and barriers.

        Reads of shared memory that the block has not written are left out, as compute-sanitizer does unless asked:
        threads often load what they never use. Where it matters the outputs show it, for every block starts with
        shared memory full of NaN.

        Raises RunFailure when the call fails and no check says why.
        """
        with TemporaryDirectory(prefix="kernelblaster-") as scratch:
            report = OwnReport(Path(scratch) / "findings.jsonl", "PTXEMU_CHECKS")
            try:
                self._run(build, job, lambda process: process.call(0), report, timeout_s)
                found = report.findings()
            except RunFailure as failure:
                found = [] if failure.kind is RunFailureKind.POLICY else report.findings_of_a_failure()
                if not found:
                    raise
        found = named(found, partial(demangle, self._toolchain))
        return [sanitizer_finding(one) for one in found if one.kind is not FindingKind.UNINITIALIZED_SHARED]

    def reading(self) -> None:
        """There is no clock to read."""
        return None

    def exclusive(self, *, wait: bool = True) -> AbstractContextManager[bool]:
        """Nothing to guard: modelled times do not depend on what else the machine does."""
        return nullcontext(True)

    def shared(self) -> AbstractContextManager[None]:
        """As `exclusive`."""
        return nullcontext()

    def counting(self) -> AbstractContextManager[None]:
        """As `exclusive`: each emulator counts for itself."""
        return nullcontext()

    def _assemble(self, build: Build) -> None:
        """Put the module next to the program, once. Raises BuildFailure naming PTX line and source line."""
        if build.ptx is None:
            raise DeviceError(f"the build of {build.source_path} kept no PTX", hint="delete the cache directory")
        system = (*self._toolchain.include_dirs, harness_include_dir())
        try:
            ensure_module(_made(build), build.ptx, system, tuple(ptxas_resources(build.resources).values()))
        except ProgramNotEmulatable as error:
            raise BuildFailure(BuildFailureKind.NOT_EMULATABLE, error.message, error.log) from error

    def _environment(self, build: Build) -> dict[str, str]:
        return {
            "PTXEMU_MODULE": str(module_path(_made(build))),
            "PTXEMU_DEVICE": str(ensure_figures(self._gpu, self._cache)),
            "PTXEMU_THREADS": str(self._threads),
            # On a GPU the filter of system calls lets none of them have its thread.
            "PTXEMU_HOST_FUNCTIONS": "0",
            "PTXEMU_MOST_REPORTED": str(MOST_REPORT_BYTES),
        }

    def _view(self, build: Build) -> FileView:
        """What a program of this device needs beside itself: core, module, figures of the GPU, C and C++."""
        own = (self._core.library_dir, module_path(_made(build)), ensure_figures(self._gpu, self._cache))
        return FileView(readable=(*own, *runtime_libraries()), system=SystemView.PROGRAM)

    def _count(self, build: Build, job: Job, timeout_s: float, perturbation: int) -> Counted:
        """Launches and transfers of one warmed call on values it has not seen, and its outputs.

        A job that allows a sample has all its blocks executed when they cannot be sampled; its outputs are not asked
        for either way.

        Raises RunFailure.
        """
        if not job.instruction_budget:

            def profile_and_fetch(process: HarnessProcess) -> CallResult:
                process.profile(perturbation)
                return process.fetch()

            return self._whole(build, job, profile_and_fetch, timeout_s)

        def profile(process: HarnessProcess) -> None:
            process.profile(perturbation)

        try:
            return Counted(*self._counted(build, job, profile, timeout_s, _sampled(build, job)))
        except NotSampled as because:
            try:
                return self._whole(build, job, profile, timeout_s)
            except RunFailure as failure:
                reason = f"{failure.reason}, with every block executed: {because.reason}"
                raise RunFailure(failure.kind, reason, failure.log) from failure

    def _whole(
        self, build: Build, job: Job, use: Callable[[HarnessProcess], CallResult | None], timeout_s: float
    ) -> Counted:
        """With every block executed. Raises RunFailure."""
        try:
            return Counted(*self._counted(build, job, use, timeout_s, {}))
        except NotSampled as because:
            reason = f"the emulator's report tells of a sample, and none was asked for: {because.reason}"
            raise RunFailure(RunFailureKind.POLICY, reason) from because

    def _counted(
        self, build: Build, job: Job, use: Callable[[HarnessProcess], Used], timeout_s: float, more: Mapping[str, str]
    ) -> tuple[list[CountedRecord], Used]:
        """What was counted while a process of its own was used, and what came of the use.

        Raises NotSampled and RunFailure.
        """
        with TemporaryDirectory(prefix="kernelblaster-") as scratch:
            report = OwnReport(Path(scratch) / "report.jsonl", "PTXEMU_REPORT")
            try:
                used = self._run(build, job, use, report, timeout_s, more)
            except RunFailure as failure:
                if failure.kind is not RunFailureKind.POLICY:
                    report.look_for_a_reason()
                raise
            return report.records(), used

    def _run(
        self,
        build: Build,
        job: Job,
        use: Callable[[HarnessProcess], Used],
        report: OwnReport,
        timeout_s: float,
        more: Mapping[str, str] | None = None,
    ) -> Used:
        """What comes of using a process of its own, of which `report` tells. Raises RunFailure.

        `more` are further variables of its environment.
        """
        env = {**self._environment(build), report.variable: str(report.path), **(more or {})}
        view = self._view(build) | FileView(writable=(report.path.parent,))
        with HarnessProcess(build, job, env=env, view=view, limits=self._limits, timeout_s=timeout_s) as process:
            process.load()
            used = use(process)
            report.check(process.reported)
            process.quit(_ENDING_S)
            report.cut(process.reported)
            return used


def _made(build: Build) -> Path:
    """What was made of the candidate alone."""
    return build.library or build.program


def _missing_in_runtime(failure: BuildFailure) -> BuildFailure | None:
    """The failure of a candidate that only lacks functions of the CUDA runtime when it is linked; else None."""
    if failure.kind is not BuildFailureKind.LINK:
        return None
    lacking = missing_runtime_functions(failure.reason.removeprefix("undefined: ").split(", "))
    return BuildFailure(BuildFailureKind.NOT_EMULATABLE, lacking, log=failure.log) if lacking else None


def _sampled(build: Build, job: Job) -> dict[str, str]:
    """A sample of the blocks, which the program cannot know: it depends on its own digest."""
    return {
        "PTXEMU_SAMPLE": str(job.instruction_budget),
        "PTXEMU_SAMPLE_SEED": str(_schedule(build, job)),
    }


def _schedule(build: Build, job: Job) -> int:
    """Seed of the order of turns: the same for the same program and extents, never 0."""
    text = f"{build.digest}/{sorted(job.sizes.items())}"
    return 1 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
