"""Real builds with nvcc. Few: each takes about a second."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelblaster.cuda_source.features import machine_counts
from kernelblaster.devices.base import Harness
from kernelblaster.devices.build.builder import CandidateBuilder
from kernelblaster.devices.build.policy import CompiledCandidate, ObjectFindings
from kernelblaster.devices.build.ptxas import parse_resources
from kernelblaster.devices.build.recipes import Recipes
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import first_error
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.problems.problem import Precision, Problem, ProblemId

FIXTURES = Path(__file__).parents[1] / "fixtures"

DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t n);
static void call(kb::Harness& d) { launch_gpu_implementation(d.output("output"), d.input("x"), d.size("n")); }
KB_DRIVER(call)
"""

# Shares COMDAT groups (std::vector<char>, std::map) with the driver, and has a static in an inline function.
CANDIDATE = """
#include <kernelblaster/scalar.cuh>
#include <map>
#include <string>
struct Plan { static Plan& get() { static Plan plan; return plan; } std::vector<char> space; };
static std::map<std::string, std::string> names;
template <typename T> __global__ void copy(T* o, const T* x, int64_t n) {
    __shared__ T tile[256];
    const int64_t i = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
    if (i < n) o[i] = tile[255 - threadIdx.x];
}
extern "C" void launch_gpu_implementation(void* output, const void* x, int64_t n) {
    Plan::get().space.resize(n);
    names["a"] += "b";
    copy<scalar_t><<<(n + 255) / 256, 256>>>((scalar_t*)output, (const scalar_t*)x, n);
}
"""

PLAIN = """
#include <cstdint>
__global__ void copy(char* o, const char* x) { o[threadIdx.x] = x[threadIdx.x]; }
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    copy<<<1, n>>>((char*)output, (char*)x);
}
"""
"""Without headers, which take most of a second."""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    directory = tmp_path_factory.mktemp("problem")
    (directory / "driver.cpp").write_text(DRIVER)
    return Problem(ProblemId(1, 1), "Copy", directory, workloads={})


@pytest.fixture(scope="module", params=["linked", "deferred"])
def builder(request: pytest.FixtureRequest, toolchain: Toolchain, own_cache: Callable[[], Path]) -> CandidateBuilder:
    deferred = request.param == "deferred"
    link = toolchain.cudart_shared_link_args if deferred else toolchain.cudart_link_args
    assert link is not None, "the tests' toolkit has the runtime as a shared object, too"
    return CandidateBuilder(
        Recipes(toolchain, "sm_90a", link, deferred_loading=deferred),
        CandidateRules(),
        own_cache(),
        jobs=1,
    )


@pytest.fixture(scope="module")
def harness(builder: CandidateBuilder, problem: Problem) -> Harness:
    return builder.harness(problem, Precision.FP16)


def listed(toolchain: Toolchain, problem: Problem, cache: Path, room: Path, said: str) -> dict[str, int] | None:
    """What a build knows of machine code where shell scripts extract it, and say something of it."""
    extracting = 'test "$1 $2 $3" = "-xelf all ../candidate.o" && echo code > candidate.1.sm_90a.cubin'
    tools = {}
    for name, text in (("cuobjdump", extracting), ("nvdisasm", said)):
        tools[name] = room / name
        tools[name].write_text(f"#!/bin/sh\n{text}\n")
        tools[name].chmod(0o755)
    link = toolchain.cudart_link_args
    recipes = Recipes(replace(toolchain, **tools), "sm_90a", link, keep_ptx=False)
    builder = CandidateBuilder(recipes, CandidateRules(), cache, jobs=1)
    machine = builder.program(CANDIDATE, builder.harness(problem, Precision.FP16)).machine
    return None if machine is None else dict(machine)


@pytest.mark.nvcc
def test_machine_code_is_counted_where_a_tool_lists_it(
    toolchain: Toolchain, problem: Problem, own_cache: Callable[[], Path], tmp_path: Path
) -> None:
    lines = "/*0000*/ LDG.E.128 R0 ; /*0010*/ HMMA.16816.F32 R4 ; /*0020*/ EXIT ;"
    listing = f'test "$1 $2" = "-c candidate.1.sm_90a.cubin" && echo "{lines}"'
    counts = {"instructions": 3, "vector_access": 1, "mma_sync": 1}
    assert listed(toolchain, problem, own_cache(), tmp_path, listing) == counts


@pytest.mark.nvcc
def test_a_listing_without_instructions_says_nothing(
    toolchain: Toolchain, problem: Problem, own_cache: Callable[[], Path], tmp_path: Path
) -> None:
    """Headers alone come of a tool that fails half way; they refute nothing."""
    half = "echo '/*0000*/ EXIT ;'; exit 3"
    assert listed(toolchain, problem, own_cache(), tmp_path, half) is None
    header = 'printf "Fatbin elf code:\\n================\\narch = sm_90a\\n\\tcode for sm_90a\\n"'
    assert listed(toolchain, problem, own_cache(), tmp_path, header) is None


@pytest.mark.nvcc
def test_real_tools_list_the_machine_code(
    toolchain: Toolchain, problem: Problem, own_cache: Callable[[], Path]
) -> None:
    """In the sandbox of compilers, whose /proc is empty. Triton's wheel brings the tools, and so do toolkits."""
    bundled = importlib.util.find_spec("triton")
    beside = [] if bundled is None or bundled.origin is None else [Path(bundled.origin).parent / "backends/nvidia/bin"]
    search = toolchain.search
    tools = {name: search.executable(name, toolchain.root / "bin", *beside) for name in ("cuobjdump", "nvdisasm")}
    if None in tools.values():
        pytest.skip("needs cuobjdump and nvdisasm")
    recipes = Recipes(replace(toolchain, **tools), "sm_90a", toolchain.cudart_link_args)
    builder = CandidateBuilder(recipes, CandidateRules(), own_cache(), jobs=1)
    build = builder.program(CANDIDATE, builder.harness(problem, Precision.FP16))
    assert build.cubin is not None, "what nvcc keeps is still there"
    whole = subprocess.run([str(tools["nvdisasm"]), "-c", str(build.cubin)], capture_output=True, text=True, check=True)
    assert build.machine == machine_counts(whole.stdout)


@pytest.mark.nvcc
def test_a_tool_that_fails_costs_no_build(
    toolchain: Toolchain, problem: Problem, own_cache: Callable[[], Path], tmp_path: Path
) -> None:
    assert listed(toolchain, problem, own_cache(), tmp_path, "exit 3") is None


@pytest.mark.nvcc
def test_a_candidate_becomes_a_program_once(builder: CandidateBuilder, harness: Harness) -> None:
    build = builder.program(CANDIDATE, harness)
    assert build.seconds > 0
    assert build.source_path.read_text() == CANDIDATE
    (kernel,) = build.resources
    assert kernel.name == "void copy<__half>(__half*, __half const*, long)"
    assert kernel.symbol is not None
    assert kernel.registers > 0
    assert kernel.shared_bytes == 512
    assert kernel.spill_store_bytes == 0
    assert build.ptx is not None
    assert ".target sm_90a" in build.ptx.read_text()
    assert (build.library is None) == (harness.program is None)
    assert build.program == (harness.program or build.source_path.parent / "program")
    alone = subprocess.run([str(build.program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert alone.returncode == 3

    again = builder.program(CANDIDATE, harness)
    assert again.seconds == 0.0
    assert (again.digest, again.program, again.library) == (build.digest, build.program, build.library)
    assert again.resources == build.resources


@pytest.mark.nvcc
def test_a_compile_error_is_a_failure_with_its_log_also_from_the_cache(
    builder: CandidateBuilder, harness: Harness
) -> None:
    source = "void launch_gpu_implementation(void* output, void* x, int64_t n) { missing(); }"
    for _ in range(2):
        with pytest.raises(BuildFailure) as failure:
            builder.program(source, harness)
        assert failure.value.kind is BuildFailureKind.COMPILE
        assert "candidate.cu(1)" in failure.value.reason
        assert "missing" in failure.value.log


@pytest.mark.nvcc
@pytest.mark.alternating("builder")
def test_a_wrong_signature_is_a_link_failure(builder: CandidateBuilder, harness: Harness) -> None:
    with pytest.raises(BuildFailure) as failure:
        builder.program("void launch_gpu_implementation(void* output, void* x, int n) {}", harness)
    assert failure.value.kind is BuildFailureKind.LINK
    assert "void launch_gpu_implementation(void* output, void* x, int64_t n);" in failure.value.reason


@pytest.mark.nvcc
@pytest.mark.alternating("builder")
def test_an_undefined_helper_is_a_link_failure(builder: CandidateBuilder, harness: Harness) -> None:
    source = "void helper();\nvoid launch_gpu_implementation(void*, void*, int64_t) { helper(); }"
    with pytest.raises(BuildFailure, match=r"undefined: helper\(\)") as failure:
        builder.program(source, harness)
    assert failure.value.kind is BuildFailureKind.LINK


@pytest.mark.nvcc
@pytest.mark.alternating("builder")
def test_replacing_the_runtime_is_a_reward_hack(builder: CandidateBuilder, harness: Harness) -> None:
    source = """
    extern "C" cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { *ms = 0; return cudaSuccess; }
    void launch_gpu_implementation(void*, void*, int64_t) {}
    """
    with pytest.raises(BuildFailure, match="cudaEventElapsedTime") as failure:
        builder.program(source, harness)
    assert failure.value.kind is BuildFailureKind.POLICY


@pytest.mark.alternating("builder")
def test_streams_of_a_candidate_are_made_by_the_guard(builder: CandidateBuilder, harness: Harness) -> None:
    stream = "cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); copy<<<1, n, 0, s>>>"
    build = builder.program(PLAIN.replace("copy<<<1, n>>>", stream), harness)
    names = subprocess.run(
        ["nm", str(build.library or build.program)], capture_output=True, text=True, check=True
    ).stdout
    assert " kb_guard_cudaStreamCreateWithFlags\n" in names
    assert "kb_guard_cudaStreamCreateWithPriority" not in names


@pytest.mark.alternating("builder")
def test_a_system_call_in_assembly_is_a_reward_hack(builder: CandidateBuilder, harness: Harness) -> None:
    """Where nothing contains it; a candidate that is loaded runs under the filter of system calls."""
    source = PLAIN.replace("copy<<<", 'asm volatile("syscall" ::: "memory"); copy<<<')
    if harness.program is not None:
        assert builder.program(source, harness).library is not None
        return
    with pytest.raises(BuildFailure) as caught:
        builder.program(source, harness)
    assert caught.value.kind is BuildFailureKind.POLICY
    assert "system calls" in caught.value.reason


def test_a_hostile_include_never_reaches_the_compiler(builder: CandidateBuilder, harness: Harness) -> None:
    with pytest.raises(BuildFailure) as failure:
        builder.program("#include </etc/passwd>", harness)
    assert failure.value.kind is BuildFailureKind.POLICY


def test_harnesses_differ_by_precision_and_are_kept(
    builder: CandidateBuilder, harness: Harness, problem: Problem
) -> None:
    assert builder.harness(problem, Precision.FP16) == harness
    assert harness.launcher_symbol == "_Z25launch_gpu_implementationPvS_l"


@pytest.mark.alternating("builder")
def test_a_broken_harness_is_the_problems_fault(builder: CandidateBuilder, tmp_path: Path) -> None:
    problem = Problem(ProblemId(1, 2), "Broken", tmp_path, workloads={})
    with pytest.raises(ProblemError, match=r"driver\.cpp"):
        builder.harness(problem, Precision.FP16)
    (tmp_path / "driver.cpp").write_text("int main( {")
    with pytest.raises(ProblemError, match=r"driver\.cpp:1:\d+: error: "):
        builder.harness(problem, Precision.FP16)
    calling = "void launch_gpu_implementation(); void call() { launch_gpu_implementation(); }"
    for text, told in (
        ("int main() {}", "launch_gpu_implementation"),
        (calling, r"driver\.cpp"),
        (DRIVER + "int main() {}", "main"),
    ):
        (tmp_path / "driver.cpp").write_text(text)
        with pytest.raises(ProblemError, match=told):
            builder.harness(problem, Precision.FP16)


def test_resources_of_a_captured_report() -> None:
    report = (FIXTURES / "ncu" / "ptxas_sm_90a.txt").read_text()
    resources = {item.symbol: item for item in parse_resources(report, lambda names: list(names))}
    assert len(resources) == 7
    softmax = resources["_Z11softmax_rowPK6__halfPS_i"]
    assert (softmax.registers, softmax.shared_bytes, softmax.stack_bytes) == (29, 1024, 0)
    assert resources["_Z11copy_scalarPKfPfl"].shared_bytes == 0


def test_a_cut_off_report_leaves_the_kernel_out() -> None:
    report = "ptxas info    : Compiling entry function '_Z1kv' for 'sm_90a'\nptxas info    : Used 8 registers\n"
    assert parse_resources(report, lambda names: list(names)) == ()


class Refusing:
    """Rules under which nothing may be built; without them, everything."""

    def __init__(self, version: str) -> None:
        self.version = version

    def check_source(self, source: str) -> None:
        if self.version == "strict":
            raise BuildFailure(BuildFailureKind.POLICY, "nothing is allowed")

    def check_object(self, compiled: CompiledCandidate) -> ObjectFindings:
        assert any("cudaLaunchKernel" in name for name in compiled.symbols.undefined)
        assert "main" in compiled.harness.strong
        assert compiled.contained or "launch_gpu_implementation" in compiled.disassembly
        return ObjectFindings()


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("declared", "stream", "asked"),
    [
        ("", "0", ()),
        ('extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t*, unsigned, int);',
         "(cudaStreamCreateWithPriority(&side, 1, 0), side)", ("cudaStreamCreateWithPriority",)),
        ('extern "C" cudaError_t cudaStreamCreateWithFlags_ptsz(cudaStream_t*, unsigned);',
         "(cudaStreamCreateWithFlags_ptsz(&side, 1), side)", ("cudaStreamCreateWithFlags_ptsz",)),
    ],
    ids=["none", "priority", "per thread"],
)  # fmt: skip
def test_a_build_tells_by_what_a_candidate_gets_streams_of_its_own(
    builder: CandidateBuilder, harness: Harness, declared: str, stream: str, asked: tuple[str, ...]
) -> None:
    source = declared + PLAIN.replace("copy<<<1, n>>>", f"static cudaStream_t side; copy<<<1, n, 0, {stream}>>>")
    made, cached = (builder.program(source, harness) for _ in range(2))
    assert made.seconds > 0
    assert cached.seconds == 0
    assert made.own_streams == cached.own_streams == asked


@pytest.mark.nvcc
def test_other_rules_are_another_build(toolchain: Toolchain, problem: Problem, own_cache: Callable[[], Path]) -> None:
    cache = own_cache()
    recipes = Recipes(toolchain, "sm_90a", toolchain.cudart_link_args)
    strict, lax = (CandidateBuilder(recipes, Refusing(version), cache) for version in ("strict", "lax"))
    harness = strict.harness(problem, Precision.FP16)
    with pytest.raises(BuildFailure, match="nothing is allowed"):
        strict.program(PLAIN, harness)
    assert lax.program(PLAIN, harness).seconds > 0


def test_what_ptxas_says_costs_performance_is_kept_for_its_kernel():
    why = "wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline"
    entry = """ptxas info    : Compiling entry function '{0}' for 'sm_90a'
ptxas info    : Function properties for {0}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers
"""
    loss = f"ptxas info    : (C7510) Potential Performance Loss: {why} in the function '_Z4gemm'\n"
    report = loss * 2 + entry.format("_Z4gemm") + entry.format("_Z4copy")
    found = {item.symbol: item.warnings for item in parse_resources(report, lambda names: list(names))}
    assert found == {"_Z4gemm": (why,), "_Z4copy": ()}


REPORT = """ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers
"""


CALLED = REPORT[REPORT.index("ptxas info    : Function") : REPORT.index("ptxas info    : Used")].replace(
    "for k", "for f"
)


def test_a_function_that_two_kernels_call_is_no_imitation() -> None:
    found = parse_resources(REPORT + CALLED + REPORT.replace("'k'", "'l'").replace("for k", "for l") + CALLED, list)
    assert [kernel.symbol for kernel in found] == ["k", "l"]


# What ptxas tells more than once, or outside of a kernel: functions that are called, by name, by pointer, by table, by
# themselves; and what it warns of beside its figures.
CALLS = """
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
__device__ __noinline__ int twice(int value) { return value * value + 3; }
template <typename T> __device__ __noinline__ T cubed(T value) { return value * value * value + T(1); }
__device__ __noinline__ int steps(int n) { return n < 2 ? n : steps(n - 1) + steps(n - 2); }
__device__ int first(int value) { return value + 1; }
__device__ int second(int value) { return value * 7; }
__device__ int (*table[2])(int) = {first, second};
struct Base { __device__ virtual int of(int value) const = 0; };
struct One : Base { __device__ int of(int value) const override { return value + 1; } };
struct Two : Base { __device__ int of(int value) const override { return value * 2; } };
__device__ int all(int* at, int step) {
    One one;
    Two two;
    const Base* chosen = at[0] > step ? static_cast<const Base*>(&one) : &two;
    assert(at[1] >= 0);
    if (at[2] == 77) printf("%d\\n", step);
    const int by_name = twice(at[3]) + cubed(at[4]) + int(cubed(float(at[5]))) + steps(at[6]);
    return by_name + table[at[7] & 1](step) + chosen->of(step);
}
__global__ void __launch_bounds__(1024, 2) kernel_1(int* at) { at[threadIdx.x] = all(at, 1); }
__global__ void __cluster_dims__(2) kernel_2(int* at) {
    cooperative_groups::this_cluster().sync();
    at[threadIdx.x] = all(at, 2);
}
namespace { template <int N> __global__ void __maxnreg__(64) kernel_3(int* at) { at[threadIdx.x] = all(at, N); } }
void launch_all(int* at) {
    const auto launch = [at](auto kernel) { kernel<<<2, 32>>>(at); };
    launch(kernel_1), launch(kernel_2), launch(kernel_3<3>), launch(kernel_3<4>);
}
"""


def test_kernels_may_call_functions_that_are_not_inlined(builder: CandidateBuilder, harness: Harness) -> None:
    build = builder.program(CALLS + CANDIDATE, harness)
    told = " ".join(resources.symbol for resources in build.resources)
    assert [told.count(kernel) for kernel in ("kernel_1", "kernel_2", "kernel_3", "copy")] == [1, 1, 2, 1]


def test_kernels_may_use_cub_though_it_names_ranges_for_profilers(builder: CandidateBuilder, harness: Harness) -> None:
    """Its header that does so alone: all of CUB takes half a minute."""
    assert builder.program(f"#include <cub/detail/nvtx.cuh>\n{CANDIDATE}", harness).resources


@pytest.mark.parametrize(
    "imitated",
    [CALLED.replace("for f", "for k"), REPORT.replace("168", "8"), REPORT, *REPORT.splitlines(keepends=True)[1:]],
)
def test_a_message_that_imitates_ptxas_is_found_out(imitated: str) -> None:
    """Wherever in the log it comes to stand: the figures decide how many warps the emulated device holds at once."""
    lines = REPORT.splitlines(keepends=True)
    for place in range(len(lines) + 1):
        with pytest.raises(BuildFailure) as caught:
            parse_resources("".join([*lines[:place], imitated, *lines[place:]]), list)
        assert caught.value.kind is BuildFailureKind.POLICY


@pytest.mark.parametrize(
    "message",
    [
        "1" * 10_000 + " bytes stack frame",
        "Used " + "1" * 10_000 + " registers",
        "Potential Performance Loss: " * 50_000,
    ],
)
def test_messages_of_the_source_neither_stop_nor_delay_the_reading_of_a_log(message: str) -> None:
    assert [kernel.registers for kernel in parse_resources(f"a.cu(1): {message}\n{REPORT}{message}", list)] == [168]


def test_an_assembler_that_gives_up_says_why() -> None:
    log = "ptxas info : 0 bytes gmem\nptxas fatal   : (C7602) Insufficient registers (128) to compile line 4371\n"
    assert "Insufficient registers" in first_error(log)
