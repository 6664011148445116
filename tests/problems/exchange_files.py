"""Data sets in the style of FlashInfer-Bench and SOL-ExecBench, made for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

RMSNORM_REFERENCE = """\
import torch


@torch.no_grad()
def run(hidden, weight, eps):
    wide = hidden.to(torch.float32)
    scale = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * weight.to(torch.float32)).to(hidden.dtype)
"""
RMSNORM_CUDA = """\
#include <cuda_fp16.h>

__global__ void rmsnorm_kernel(const __half* hidden, const __half* weight, __half* out, int width, float eps) {
    const __half* row = hidden + static_cast<long>(blockIdx.x) * width;
    __shared__ float partial[128];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += __half2float(row[i]) * __half2float(row[i]);
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    const float scale = rsqrtf(partial[0] / width + eps);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[static_cast<long>(blockIdx.x) * width + i] =
            __float2half_rn(__half2float(row[i]) * scale * __half2float(weight[i]));
}

void rmsnorm(const __half* __restrict__ hidden, const __half* __restrict__ weight, __half* out, int tokens, int width,
             float eps, cudaStream_t stream) {
    rmsnorm_kernel<<<tokens, 128, 0, stream>>>(hidden, weight, out, width, eps);
}
"""


def rmsnorm_definition() -> Json:
    """Root mean square normalisation with a constant width, in half precision."""
    return {
        "name": "rmsnorm_w96",
        "op_type": "rmsnorm",
        "description": "rows over their root mean square",
        "tags": ["status:made", "model:none"],
        "axes": {"tokens": {"type": "var", "description": "rows"}, "width": {"type": "const", "value": 96}},
        "inputs": {
            "hidden": {"shape": ["tokens", "width"], "dtype": "float16"},
            "weight": {"shape": ["width"], "dtype": "float16", "description": None},
            "eps": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["tokens", "width"], "dtype": "float16"}},
        "reference": RMSNORM_REFERENCE,
        "constraints": ["tokens > 0"],
        "source_of": {"paper": None, "lines": [1, 2]},
    }


def workload(name: str, axes: dict[str, int], inputs: Json, **more: Any) -> Json:
    """One workload."""
    return {"uuid": name, "axes": axes, "inputs": inputs, **more}


def rmsnorm_workload(name: str, tokens: int, eps: float = 1e-5, **more: Any) -> Json:
    """One of `rmsnorm_definition`."""
    random = {"type": "random"}
    inputs = {"hidden": random, "weight": random, "eps": {"type": "scalar", "value": eps}}
    return workload(name, {"tokens": tokens}, inputs, **more)


def solution(
    definition: str, name: str, content: str = RMSNORM_CUDA, entry: str = "k.cu::rmsnorm", **spec: Any
) -> Json:
    """A solution of one file."""
    path = entry.split("::")[0]
    return {
        "name": name,
        "definition": definition,
        "author": "a-lab",
        "spec": {"target_hardware": ["NVIDIA_H200"], "entry_point": entry, "dependencies": [], **spec},
        "sources": [{"path": path, "content": content}],
        "later_key": {"kept": True},
    }


def passed(definition: str, work: Json, name: str) -> Json:
    """A trace of a solution that passed."""
    return {
        "definition": definition,
        "workload": work,
        "solution": name,
        "evaluation": {
            "status": "PASSED",
            "environment": {"hardware": "NVIDIA_H200", "libs": {"cuda": "12.8"}},
            "timestamp": "2026-01-01T00:00:00",
            "log": "",
            "correctness": {"max_relative_error": 1e-3, "max_absolute_error": "Infinity", "extra": {"x": [1]}},
            "performance": {"latency_ms": 0.02, "reference_latency_ms": 0.2, "speedup_factor": 10.0},
        },
    }


def write_json(path: Path, value: Json) -> None:
    """A file of one record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_lines(path: Path, values: list[Json]) -> None:
    """A file of one record per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def records(root: Path) -> dict[str, Any]:
    """All JSON below a directory, by path: what a file says, however it is written."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        if path.suffix == ".json":
            found[str(path.relative_to(root))] = json.loads(path.read_text())
        elif path.suffix == ".jsonl":
            found[str(path.relative_to(root))] = [json.loads(line) for line in path.read_text().splitlines()]
        elif path.is_file():
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


def write_trace_set(root: Path) -> Path:
    """A trace set of FlashInfer-Bench: one definition with a CUDA and a Triton solution, and a gemm without any."""
    name, works = "rmsnorm_w96", [rmsnorm_workload("3f-a", 257), rmsnorm_workload("3f-b", 5, note={"kept": None})]
    write_json(root / "definitions" / "rmsnorm" / f"{name}.json", rmsnorm_definition())
    write_lines(
        root / "workloads" / "rmsnorm" / f"{name}.jsonl",
        [{"definition": name, "workload": one, "solution": None, "evaluation": None} for one in works],
    )
    place = root / "solutions" / "a-lab" / "rmsnorm" / name
    triton = solution(name, "triton_one", "def run(): pass\n", "main.py::run", language="triton")
    write_json(place / "triton_one.json", triton)
    write_json(place / "raw_cuda.json", solution(name, "raw_cuda", language="cuda", destination_passing_style=True))
    write_lines(root / "traces" / "a-lab" / "rmsnorm" / f"{name}.jsonl", [passed(name, works[0], "triton_one")])
    gemm = {
        "name": "gemm_n8",
        "op_type": "gemm",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 8}, "K": {"type": "var"}},
        "inputs": {"A": {"shape": ["M", "K"], "dtype": "float16"}, "B": {"shape": ["N", "K"], "dtype": "float16"}},
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "float16"}},
        "reference": "import torch\n\ndef run(A, B):\n    return torch.matmul(A, B.T)\n",
    }
    write_json(root / "definitions" / "gemm" / "gemm_n8.json", gemm)
    blob = {"type": "safetensors", "path": "blob/w/b.safetensors", "tensor_key": "B"}
    (root / "blob" / "w").mkdir(parents=True)
    (root / "blob" / "w" / "b.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    random = {"type": "random"}
    gemm_works = [
        workload("g1", {"M": 16, "K": 32}, {"A": random, "B": random}),
        workload("g2", {"M": 16, "K": 32}, {"A": random, "B": blob}),
    ]
    write_lines(
        root / "workloads" / "gemm" / "gemm_n8.jsonl",
        [{"definition": "gemm_n8", "workload": one} for one in gemm_works],
    )
    return root


def mixed_definition() -> Json:
    """Derived axes, a number, a whole number, a flag, a tensor without axes, fp8, two outputs, inputs of its own."""
    return {
        "name": "scaled_rows",
        "axes": {
            "rows": {"type": "var"},
            "heads": {"type": "const", "value": 4},
            "width": {"type": "expr", "expression": "heads * 8"},
            "half": {"type": "expr", "expression": "width // 2", "description": "of a row"},
        },
        "inputs": {
            "x": {"shape": ["rows", "width"], "dtype": "float8_e4m3fn"},
            "keep": {"shape": ["rows"], "dtype": "bool"},
            "gain": {"shape": [], "dtype": "float32"},
            "alpha": {"shape": None, "dtype": "float32"},
            "group": {"shape": None, "dtype": "int32"},
            "causal": {"shape": None, "dtype": "bool"},
        },
        "outputs": {
            "y": {"shape": ["rows", "half"], "dtype": "bfloat16"},
            "top": {"shape": ["rows"], "dtype": "int64"},
        },
        "reference": (
            "import torch\n\n"
            "def draw(axes_and_scalars, device):\n"
            "    rows, width = axes_and_scalars['rows'], axes_and_scalars['width']\n"
            "    return {'x': torch.randn(rows, width, device=device), 'gain': torch.ones((), device=device),\n"
            "            'keep': torch.ones(rows, dtype=torch.bool, device=device)}\n\n"
            "def run(x, keep, gain, alpha, group, causal):\n"
            "    y = x[:, : x.shape[1] // 2] * gain * alpha * keep[:, None]\n"
            "    return y, x.argmax(dim=1) // group\n"
        ),
        "custom_inputs_entrypoint": "draw",
        "hf_id": "none/none",
    }


def mixed_workload(name: str, kind: str, rows: int, group: int = 2, **more: Any) -> Json:
    """One of `mixed_definition`, whose tensors are `random` or `custom`."""
    inputs: Json = {tensor: {"type": kind} for tensor in ("x", "keep", "gain")}
    numbers = {"alpha": 0.5, "group": group, "causal": True}
    inputs |= {number: {"type": "scalar", "value": value} for number, value in numbers.items()}
    return workload(name, {"rows": rows}, inputs, **more)


def write_sol(root: Path) -> Path:
    """Two problem directories of SOL-ExecBench."""
    tolerance = {"max_atol": 1e-2, "max_rtol": 1e-2, "required_matched_ratio": 0.99, "max_error_cap": None}
    mixed = root / "L1" / "scaled_rows"
    write_json(mixed / "definition.json", mixed_definition())
    works = [
        mixed_workload("wide", "random", 40, tolerance=tolerance),
        mixed_workload("drawn", "custom", 6, group=3),
    ]
    write_lines(mixed / "workload.jsonl", works)
    write_json(
        mixed / "solution_torch.json",
        solution(
            "scaled_rows",
            "torch",
            "import torch\n",
            "main.py::run",
            languages=["pytorch"],
            destination_passing_style=False,
        ),
    )
    write_lines(mixed / "trace.jsonl", [passed("scaled_rows", works[0], "torch")])
    norm = root / "L1" / "rmsnorm_w96"
    write_json(norm / "definition.json", {k: v for k, v in rmsnorm_definition().items() if k != "op_type"})
    write_lines(norm / "workload.jsonl", [rmsnorm_workload("only", 9), rmsnorm_workload("other_eps", 9, eps=1e-6)])
    write_json(
        norm / "solution_raw.json",
        solution("rmsnorm_w96", "raw", languages=["cuda_cpp"], compile_options={"cuda_cflags": ["-O3"]}),
    )
    (norm / "reference.py").write_text(RMSNORM_REFERENCE)
    return root
