"""No way of defining a symbol lets a candidate stand in for what the driver, the CUDA runtime or the C library uses.

A candidate is refused, or its definition stays its own: then the program defines and exports what an honest candidate's
program does. The compiler is the host's, the rest of the build is real.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kernelblaster.devices.base import Build, Harness
from kernelblaster.devices.build.builder import CandidateBuilder
from kernelblaster.devices.build.recipes import Recipes
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import ToolStep
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.problems.problem import Precision, Problem, ProblemId

pytestmark = pytest.mark.alternating("builder")

DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t n);
static void call(kb::Harness& d) { launch_gpu_implementation(d.output("output"), d.input("x"), d.size("n")); }
KB_DRIVER(call)
"""
LAUNCHER = "void launch_gpu_implementation(void*, void*, long) {}\n"
FAT = ("-flto", "-ffat-lto-objects")
"""Machine code, and beside it what the linker would compile instead."""


@dataclass(frozen=True)
class HostRecipes(Recipes):
    """Compiles candidates with the host compiler."""

    flags: tuple[str, ...] = ()

    def compile(self, source: str, precision: Precision, libraries: tuple[Library, ...], keep_in: Path) -> ToolStep:
        flags = (*self.host_flags, "-fPIC", *self.flags)
        return ToolStep(
            (str(self.tools.host_compiler), *flags, *["-x", "c++", "candidate.cu", "-c", "-o", "candidate.o"])
        )


class HostBuilder(CandidateBuilder):
    """Builds candidates of host code."""

    def _program_digest(self, source: str, harness: Harness, libraries: tuple[Library, ...]) -> str:
        return super()._program_digest(f"{self._recipes}{source}", harness, libraries)


@pytest.fixture(scope="module", params=["linked", "deferred"])
def builder(request: pytest.FixtureRequest, toolchain: Toolchain, own_cache: Callable[[], Path]) -> HostBuilder:
    deferred = request.param == "deferred"
    link = toolchain.cudart_shared_link_args if deferred else toolchain.cudart_link_args
    assert link is not None, "the tests' toolkit has the runtime as a shared object, too"
    recipes = HostRecipes(toolchain, "sm_90a", link, keep_ptx=False, deferred_loading=deferred)
    return HostBuilder(recipes, CandidateRules(), own_cache())


@pytest.fixture(scope="module")
def harness(builder: HostBuilder, tmp_path_factory: pytest.TempPathFactory) -> Harness:
    directory = tmp_path_factory.mktemp("problem")
    (directory / "driver.cpp").write_text(DRIVER)
    return builder.harness(Problem(ProblemId(1, 1), "Copy", directory, workloads={}), Precision.FP32)


def offered(build: Build) -> tuple[set[str], set[str]]:
    """Names that a candidate's program, or shared object, defines for others at the link, and at run time."""
    found = []
    for option in ("--extern-only", "--dynamic"):
        command = ["nm", "--format=posix", "--defined-only", option, str(build.library or build.program)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found.append({line.split()[0] for line in text.splitlines()})
    return found[0], found[1]


@pytest.fixture(scope="module")
def honest(builder: HostBuilder, harness: Harness) -> tuple[set[str], set[str]]:
    return offered(builder.program(LAUNCHER, harness))


def outcome(builder: HostBuilder, harness: Harness, source: str, honest: tuple[set[str], set[str]]) -> str:
    """`refused`, or `its own` when nobody else sees what was defined, or the names that leaked."""
    try:
        build = builder.program(source + LAUNCHER, harness)
    except BuildFailure as failure:
        return "refused" if failure.kind is BuildFailureKind.POLICY else f"{failure.kind}: {failure.reason}"
    now = offered(build)
    leaked = [sorted(after - before) for before, after in zip(honest, now, strict=True)]
    return "its own" if leaked == [[], []] else f"leaked: {leaked}"


USED = {
    "by the driver, from the CUDA runtime": ("cudaMemcpy", "cudaEventRecord", "cudaEventElapsedTime", "cudaMalloc"),
    "by the driver, from the C library": ("memcpy", "memcmp", "mmap", "write", "open", "_exit"),
    "by the driver, from the C++ library": ("_Znwm", "_ZdlPvm", "__cxa_throw", "_ZNSt6chrono3_V212steady_clock3nowEv"),
    "by the runtime": ("malloc", "clock_gettime", "dlsym", "pthread_create", "ioctl", "getenv", "syscall"),
    "by the linker": ("_start", "_init", "__libc_csu_init", "__dso_handle", "_GLOBAL_OFFSET_TABLE_", "environ"),
}


@pytest.mark.parametrize("user", USED)
def test_what_others_use_cannot_be_defined_for_them(
    builder: HostBuilder, harness: Harness, honest: tuple[set[str], set[str]], user: str
) -> None:
    """All names of one user at once, in assembly: some of them a compiler would not let anybody define."""
    for binding in (".globl", ".weak"):
        source = "".join(f'asm(".text\\n{binding} {name}\\n{name}: ret");\n' for name in USED[user])
        assert outcome(builder, harness, source, honest) in ("refused", "its own")


@pytest.mark.parametrize(
    "source",
    [
        'extern "C" void* malloc(unsigned long) noexcept { return nullptr; }',
        "#include <new>\nvoid* operator new(std::size_t) { return nullptr; }",
        'extern "C" int clock_gettime(int, void*) { return 0; }',
        'extern "C" void __cxa_throw(void*, void*, void (*)(void*)) { for (;;) {} }',
        'extern "C" __attribute__((visibility("hidden"))) int cudaMemcpy(void*, const void*, unsigned long, int);\n'
        "int cudaMemcpy(void*, const void*, unsigned long, int) { return 0; }",
        '__attribute__((visibility("protected"))) void (*hook)(); extern "C" void clock() {}',
    ],
    ids=["malloc", "operator new", "clock_gettime", "__cxa_throw", "hidden", "protected"],
)
def test_definitions_of_the_language(
    builder: HostBuilder, harness: Harness, honest: tuple[set[str], set[str]], source: str
) -> None:
    assert outcome(builder, harness, f"{source}\n", honest) in ("refused", "its own")


CLOCK = ".globl clock_gettime\nclock_gettime: ret"
ASSEMBLY = {
    "default version": ".symver mine, clock_gettime@@GLIBC_2.17\n.globl mine\nmine: ret",
    "old version": ".symver mine, clock_gettime@GLIBC_2.2.5\n.globl mine\nmine: ret",
    "ifunc": f".type clock_gettime, @gnu_indirect_function\n{CLOCK}",
    "unique": f".type clock_gettime, @gnu_unique_object\n.data\n{CLOCK}",
    "thread-local": f'.type clock_gettime, @tls_object\n.section .tdata, "awT"\n{CLOCK}',
    "common": ".comm environ, 8, 8",
    "absolute": ".globl clock_gettime\n.set clock_gettime, 4096",
    "group": f'.section .text.x, "axG", @progbits, clock_gettime, comdat\n{CLOCK}',
    "linkonce": f'.section .gnu.linkonce.t.clock_gettime, "ax"\n{CLOCK}',
}


@pytest.mark.parametrize("way", ASSEMBLY)
def test_definitions_of_the_assembler(
    builder: HostBuilder, harness: Harness, honest: tuple[set[str], set[str]], way: str
) -> None:
    source = "asm(" + json.dumps(f"{ASSEMBLY[way]}\n.text") + ");\n"
    assert outcome(builder, harness, source, honest) in ("refused", "its own")


def test_code_for_the_linker_to_compile_is_not_compiled(
    builder: HostBuilder, harness: Harness, honest: tuple[set[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its symbols were never localised: they would be the program's."""
    monkeypatch.setattr(builder, "_recipes", replace(builder._recipes, flags=FAT))
    source = 'extern "C" int clock_gettime(int, void*) { return 0; }\n'
    assert outcome(builder, harness, source, honest) in ("refused", "its own")


def test_code_that_runs_before_main_finds_the_libraries_as_they_are(
    builder: HostBuilder, harness: Harness, honest: tuple[set[str], set[str]]
) -> None:
    """Constructors are allowed, by every door: they are the candidate's code, and replace nothing."""
    before_libraries = '__attribute__((section(".preinit_array"), used)) static void (*b)() = early;'
    source = """
    static void early() {}
    __attribute__((constructor)) static void constructor() {}
    __attribute__((section(".init_array"), used)) static void (*a)() = early;
    __attribute__((section(".fini_array"), used)) static void (*c)() = early;
    """
    assert outcome(builder, harness, source, honest) == "its own"
    assert outcome(builder, harness, f"{source}{before_libraries}\n", honest) == "its own"
