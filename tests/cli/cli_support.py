"""A small softmax data set, candidates for it, recordings of them, and ways to call the command line."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.models.base import Purpose, Usage
from kernelblaster.models.recorded import RecordedExchange, RecordingHeader
from kernelblaster.paths import data_dir

SIZE = {"batch_size": 37, "dim": 1001}
MEDIUM = {"batch_size": 1500, "dim": 32}
SETTINGS = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "MODEL", "GPU_TYPE", "DATASET", "PRECISION"),
    *("EXPERIMENT_NAME", "RL_EXPERIMENT_NAME"),
)

FASTER = """\
#include <kernelblaster/scalar.cuh>

__device__ float combine(float value, bool maximum) {
    __shared__ float partial[32];
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffff, value, offset);
        value = maximum ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[0];
    for (int i = 1; i < blockDim.x / 32; ++i) value = maximum ? fmaxf(value, partial[i]) : value + partial[i];
    return value;
}

__global__ void softmax_cached(scalar_t* output, const scalar_t* x, int dim) {
    extern __shared__ float cache[];
    const scalar_t* row = x + int64_t(blockIdx.x) * dim;
    float maximum = -INFINITY;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) maximum = fmaxf(maximum, cache[i] = to_float(row[i]));
    maximum = combine(maximum, true);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) sum += cache[i] = __expf(cache[i] - maximum);
    const float scale = 1.0f / combine(sum, false);
    scalar_t* out = output + int64_t(blockIdx.x) * dim;
    for (int i = threadIdx.x; i < dim; i += blockDim.x) out[i] = from_float(cache[i] * scale);
}

void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    softmax_cached<<<batch_size, 512, dim * sizeof(float)>>>(
        static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), dim);
}
"""
WRONG = FASTER.replace("scale = 1.0f /", "scale = 1.02f /")
BROKEN = FASTER.replace("const float scale", "const flot scale")


def body_of(statements: str) -> str:
    """A candidate whose kernel consists of `statements`."""
    return f"""\
#include <kernelblaster/scalar.cuh>
__global__ void k(scalar_t* o, const scalar_t* x, int64_t n) {{ {statements} }}
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {{
    k<<<2, 32>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), batch_size * dim);
}}
"""


OUT_OF_BOUNDS = body_of("o[n + (int64_t(1) << 36)] = x[0];")
ENDLESS = body_of("volatile scalar_t* p = o; while (to_float(x[0]) < 1e30f) p[0] = x[0];")
TENSOR_MEMORY = body_of('asm volatile("tcgen05.wait::ld.sync.aligned;");')
TALKER = """\
#include <cstdio>
#include <kernelblaster/scalar.cuh>
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    std::printf("passed\\n{\\"verdict\\": \\"correct\\"}\\n");
}
"""


def make_dataset(root: Path, small: dict[str, int] = SIZE) -> Path:
    """A data set of one problem, level1/023, with the shipped kernel and smaller sizes."""
    source = data_dir() / "kernelbench-cuda" / "level1" / "023_Softmax"
    target = root / "level1" / "023_Softmax"
    target.mkdir(parents=True)
    for name in ("init.cu", "driver.cpp", "reference.py"):
        text = (source / name).read_text(encoding="utf-8")
        if name == "reference.py":
            shipped = '"small": {"batch_size": 263, "dim": 3001}'
            assert shipped in text
            text = text.replace(shipped, f'"small": {json.dumps(small)}')
            medium = '"medium": {"batch_size": 256, "dim": 393216}'
            assert medium in text
            text = text.replace(medium, f'"medium": {json.dumps(MEDIUM)}')
        (target / name).write_text(text, encoding="utf-8")
    return root


def add_without_small(dataset: Path, root: Path) -> None:
    """Copy a data set of `make_dataset`, with a second problem, level1/024, whose only size is called full."""
    shutil.copytree(dataset / "level1", root / "level1")
    other = root / "level1" / "024_Softmax_again"
    shutil.copytree(dataset / "level1" / "023_Softmax", other)
    reference = other / "reference.py"
    text = re.sub(r"^SIZES = \{.*?^\}", f"SIZES = {{'full': {SIZE}}}", reference.read_text(), flags=re.M | re.S)
    assert "small" not in text
    reference.write_text(text)


def reply(source: str) -> str:
    """What a model writes."""
    return f"EXPECTED_SPEEDUP: 1.5\n```cuda\n{source}```\n"


def write_recording(path: Path, *sources: str) -> Path:
    """A recording that answers every technique with the first source, and a failure of each with the next."""
    lines = [RecordingHeader.now(model="written by hand", how="test").model_dump_json()]

    def add(purpose: Purpose, source: str, **tags: str) -> None:
        exchange = RecordedExchange(
            slot=f"recorded/{len(lines)}", purpose=purpose, tags=tags, digest="", messages=(), reply=reply(source),
            usage=Usage(prompt_tokens=1000, completion_tokens=400, dollars=None), model="written by hand",
        )  # fmt: skip
        lines.append(exchange.model_dump_json())

    for technique in KnowledgeStore(seed_path()).load().techniques:
        add(Purpose.GENERATE, sources[0], problem="level1/023", precision="fp16", technique=technique)
    for failed, repaired in itertools.pairwise(sources):
        add(Purpose.REPAIR, repaired, failed_sha256=source_digest(failed))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def clean_environment(**settings: str) -> dict[str, str]:
    """This process' environment without what steers the product, and with `settings`."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return kept | settings


def _hear_signals() -> None:
    """Shells and nohup leave signals ignored in what they start behind the scenes, and so would all its children."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(arguments: Sequence[object], cwd: Path, **settings: str) -> subprocess.Popen[str]:
    """The command line in a process of its own, as at a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "kernelblaster", *map(str, arguments)],
        cwd=cwd,
        env=clean_environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_signals,
    )


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON document on standard output."""
        return json.loads(self.out)


def call(arguments: Sequence[object], cwd: Path, timeout_s: float = 120, **settings: str) -> Done:
    """Run a command to its end in a process of its own."""
    process = start(arguments, cwd, **settings)
    out, err = process.communicate(timeout=timeout_s)
    return Done(process.returncode, out, err)
