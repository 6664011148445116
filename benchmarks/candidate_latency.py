"""Seconds per candidate on a GPU: this harness against one that builds libtorch into every driver and runs ncu on it.

    python benchmarks/candidate_latency.py [--candidates N] [--json]

Ours: compile, verify on ten small input sets and at the timed size, time against the parent, profile (level1/23, fp16,
medium). Conventional, as the first release of this project works: compile driver and kernel with libtorch, run the
program once, run it under ncu with two metrics, and profile the parent again, whose program is there. Given with and
without that last part. Both on the same kernels, one after the other, each candidate different in its source so that no
cache helps.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.paths import harness_include_dir
from kernelblaster.runs.evaluations import find_problem, open_evaluator

HERE = Path(__file__).resolve().parent
TORCH_LIBRARIES = ["-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-lc10_cuda"]
CONVENTIONAL_METRICS = "sm__cycles_elapsed.max,gpu__time_duration.sum"


def say(stage: str) -> None:
    """Progress on standard error."""
    print(f"... {stage}", file=sys.stderr)


def perturbations(source: str, count: int) -> list[str]:
    """The same kernel with different block sizes: real candidates that all compile anew."""
    sizes = [128, 192, 256, 320, 384, 512, 640, 768, 896, 1024]
    unique = time.time_ns()
    return [
        source.replace("<<<batch_size, 256>>>", f"<<<batch_size, {sizes[i % len(sizes)]}>>>") + f"// {unique} {i}\n"
        for i in range(count)
    ]


def time_ours(sources: list[str]) -> list[float]:
    """Seconds per candidate through the evaluator, after one warm-up that builds the driver."""
    config = RunConfig(device="cuda")
    problem = find_problem("level1/23", config)
    start = problem.init_path.read_text()
    seconds = []
    with open_evaluator(config, say) as evaluator:
        evaluator.evaluate(problem, start)
        for source in sources:
            began = time.perf_counter()
            evaluation = evaluator.evaluate(problem, source, baseline=start)
            seconds.append(time.perf_counter() - began)
            if not evaluation.correct:
                raise SystemExit(f"candidate is {evaluation.verdict}: {evaluation.reason}")
            print(f"ours {seconds[-1]:.2f} s {evaluation.seconds}", file=sys.stderr)
    return seconds


def time_conventional(sources: list[str], nvcc: Path) -> list[tuple[float, float]]:
    """Seconds per candidate with libtorch in the build, one run and one ncu run; and those of another ncu run."""
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths

    includes = [f"-I{path}" for path in (*include_paths("cuda"), harness_include_dir())]
    libraries = [flag for path in library_paths("cuda") for flag in (f"-L{path}", f"-Xlinker=-rpath={path}")]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    seconds = []
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            kernel, program = Path(folder) / "kernel.cu", Path(folder) / "program"
            kernel.write_text(source)
            sources_and_libraries = [HERE / "libtorch_driver.cpp", kernel, *libraries, *TORCH_LIBRARIES]
            build = [nvcc, "-O3", "-std=c++17", "-arch=sm_90", "-DKB_FP16", abi, *includes, *sources_and_libraries]
            build += ["-o", program]
            ncu = ["ncu", "--clock-control", "none", "--csv", "--metrics", CONVENTIONAL_METRICS, program]
            began = time.perf_counter()
            subprocess.run([str(part) for part in build], check=True, capture_output=True)
            subprocess.run([str(program)], check=True, capture_output=True)
            subprocess.run([str(part) for part in ncu], check=True, capture_output=True)
            candidate = time.perf_counter()
            subprocess.run([str(part) for part in ncu], check=True, capture_output=True)
            seconds.append((candidate - began, time.perf_counter() - candidate))
            print(f"conventional {seconds[-1][0]:.2f} s, parent {seconds[-1][1]:.2f} s", file=sys.stderr)
    return seconds


def main() -> None:
    """Measure both and print medians, ranges and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    source = find_problem("level1/23", RunConfig()).init_path.read_text()
    sources = perturbations(source, options.candidates)
    ours = time_ours(sources)
    conventional = time_conventional(sources[: max(3, options.candidates // 2)], Toolchain.find().nvcc)
    alone, with_parent = [first for first, _ in conventional], [first + second for first, second in conventional]
    result = {
        "ours_s": ours,
        "conventional_s": alone,
        "conventional_with_parent_s": with_parent,
        "ratio": statistics.median(alone) / statistics.median(ours),
        "ratio_with_parent": statistics.median(with_parent) / statistics.median(ours),
    }
    if options.json:
        print(json.dumps(result))
        return
    for name, values in (("ours", ours), ("conventional", alone), ("and its parent profiled again", with_parent)):
        print(
            f"{name:30} median {statistics.median(values):5.2f} s, range {min(values):.2f} to {max(values):.2f}, "
            f"n = {len(values)}"
        )
    print(f"ratio {result['ratio']:.1f}, with the parent {result['ratio_with_parent']:.1f}")


if __name__ == "__main__":
    main()
