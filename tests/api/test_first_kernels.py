"""A KernelBench file is searched on the emulated GPU: the model errs, repairs, and its kernel is then made faster."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster import OutcomeStatus, RunConfig, optimize
from kernelblaster.models.base import Purpose, Reply, Request, Usage

MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, s: float) -> torch.Tensor:
        return A * s

M = 64
N = 300

def get_inputs():
    return [torch.rand(M, N), 3.0]

def get_init_inputs():
    return []
"""
KERNEL = """#include <kernelblaster/scalar.cuh>

__global__ void scale(scalar_t* output, const scalar_t* A, int64_t n, float s) {
    const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) output[i] = from_float(to_float(A[i]) * s);
}

void launch_gpu_implementation(void* output, void* A, int64_t M, int64_t N, float s) {
    const int64_t n = M * N;
    scale<<<(n + THREADS - 1) / THREADS, THREADS>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(A), n, s);
}
"""
SLOW, FAST = KERNEL.replace("THREADS", "1"), KERNEL.replace("THREADS", "256")


class Author:
    """Writes what does not compile, then what is wrong, then what is right; later a faster one."""

    name = "author"

    def __init__(self) -> None:
        self.first = [SLOW.replace("if (i", "iff (i"), SLOW.replace("* s)", "+ s)"), SLOW]
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        match request.purpose:
            case Purpose.REFLECT:
                text = '{"changes": []}'
            case Purpose.VERIFY:
                text = '{"veto": false, "addresses_reader": false, "reason": "sound"}'
            case _:
                source = self.first.pop(0) if "/first/" in request.slot else FAST
                text = f"EXPECTED_SPEEDUP: 2\n```cuda\n{source}```\n"
        return Reply(text=text, usage=Usage(prompt_tokens=9, completion_tokens=9, dollars=0.0), model=self.name)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        return None


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_kernelbench_file_becomes_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "5_Scaled.py").write_text(MODULE)
    config = RunConfig(out=tmp_path / "out", search={"rollouts": 1, "steps": 1, "repairs": 0, "least_headroom": 0.01})
    author = Author()
    summary = optimize(tmp_path / "5_Scaled.py", config=config, model=author, device="emulated")
    (row,) = summary.problems
    assert row.problem == "5_Scaled"
    assert row.start is not None
    assert row.status is OutcomeStatus.IMPROVED, row.reason
    told = [request.messages[-1].content for request in author.requests if "/first/" in request.slot]
    assert len(told) == 3
    assert "compile_error" in told[1]
    assert "wrong_values" in told[2]
    asked = len(author.requests)
    again = optimize(tmp_path / "5_Scaled.py", config=config, model=author, device="emulated")
    assert again.problems[0].status is OutcomeStatus.IMPROVED
    assert len(author.requests) == asked, "the same call again asks nothing"
