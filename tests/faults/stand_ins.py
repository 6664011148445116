"""What takes the place of a GPU and of a language model in the runs that are broken here.

The device is the scripted one of the evaluation's tests: a source names its kernel, `// kernel: us_80` takes 80 us. The
model is a function of the messages alone, so that a run asked twice is told the same. Everything else is the product.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fake_device import KERNELS, FakeDevice, FakeProfiler, Script

from kernelblaster.devices.base import Build, Candidate, Job
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, SanitizerFinding
from kernelblaster.errors import DeviceError
from kernelblaster.knowledge.relearn import curated
from kernelblaster.knowledge.schema import Core, ShapeRegime
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

START_US = 100
KNOWN_US = 92
"""The time of the kernel that a knowledge base holds of the first problem."""
LEAKING_US = 68
"""The time of kernels in which the sanitizer finds something."""
VETOED = 2
"""The problem whose final kernels the model vetoes."""
KERNELS.update({f"us_{time}": Script(device_us=time) for time in range(20, START_US + 60)})

REFERENCE = '''"""ReLU."""
import torch
SIZES = {"small": {"batch_size": 5, "dim": 259}}
class Model(torch.nn.Module):
    """max(x, 0)"""
    def forward(self, x):
        return torch.relu(x)
def get_inputs(size="small"):
    return [torch.randn(SIZES[size]["batch_size"], SIZES[size]["dim"])]
def get_init_inputs(size="small"):
    return []
'''
DRIVER = """#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim);
static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("batch_size"), d.size("dim"));
}
KB_DRIVER(call)
"""
CHANGES = [
    {
        "kind": "add_lesson",
        "reason": "seen",
        "text": "Sixteen bytes per load only pay off when rows are aligned to sixteen bytes.",
    },
    {
        "kind": "add_technique",
        "reason": "seen",
        "id": "two_rows_per_warp",
        "category": "memory",
        "summary": "Let every warp work on two short rows at once.",
        "how_to": ["Halve the warp."],
        "states": ["memory_bandwidth_saturated"],
    },
    {"kind": "add_lesson", "reason": "does not fit", "text": "short"},
]


def make_dataset(root: Path, problems: int) -> Path:
    """So many copies of one small problem, level1/001 and on."""
    for number in range(1, problems + 1):
        directory = root / "level1" / f"{number:03d}_ReLU"
        directory.mkdir(parents=True)
        (directory / "reference.py").write_text(REFERENCE)
        (directory / "driver.cpp").write_text(DRIVER)
        (directory / "init.cu").write_text(_source(START_US, number, "the start"))
    return root


def make_knowledge(path: Path) -> None:
    """What is shipped, without what was counted, and with a verified kernel of the first problem."""
    known = Core(
        problem="level1/001", op_family=OpFamily.ELEMENTWISE, arch="sm_90", device_kind=DeviceKind.EMULATED,
        precision=Precision.FP32, regime=ShapeRegime.SHORT, median_us=KNOWN_US, source="int bare;",
        whole=_source(KNOWN_US, 1, "known before"),
    )  # fmt: skip
    seed = curated(KnowledgeStore(seed_path(), owned=False).load().document)
    KnowledgeStore(path).write(seed.model_copy(update={"cores": (*seed.cores, known)}))


class StandInDevice(FakeDevice):
    """Modelled times; a GPU that is lost after a number of builds; a sanitizer that finds what a source confesses.

    Args:
        ruled: whether its counters let rules name the bottleneck; otherwise the model is asked.
        lost_after: builds after which every further one fails as a lost GPU does; None for never.
    """

    def __init__(self, *, ruled: bool, lost_after: int | None = None) -> None:
        super().__init__(DeviceKind.EMULATED)
        self._ruled = ruled
        self._left = lost_after

    def build(self, source: str, driver: Any, libraries: Sequence[Any] = ()) -> Build:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise DeviceError("cudaErrorECCUncorrectable: the GPU is lost", hint="reset it")
        return super().build(source, driver, libraries)

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> FakeProfiler:
        return _Profiler(self, candidate, self._ruled)

    def sanitize(self, build: Build, job: Job, *, timeout_s: float) -> list[SanitizerFinding]:
        found = super().sanitize(build, job, timeout_s=timeout_s)
        leaks = build.source_path.name == f"us_{LEAKING_US}"
        return [*found, SanitizerFinding(tool="memcheck", message="Invalid write of size 4")] if leaks else found


class _Profiler(FakeProfiler):
    def __init__(self, device: FakeDevice, candidate: Candidate, ruled: bool) -> None:
        super().__init__(device, candidate)
        self._ruled = ruled

    def counted(self) -> Profile:
        metrics = {str(Metric.DURATION): 1e5}
        if self._ruled:
            metrics |= {str(Metric.DRAM_THROUGHPUT): 93.0, str(Metric.SM_THROUGHPUT): 12.0}
        kernel = KernelProfile(name="relu", grid=(4096, 1, 1), block=(256, 1, 1), metrics=metrics)
        return Profile(source=ProfileSource.EMULATED, kernels=[kernel], totals=metrics)


def answer(messages: Sequence[dict[str, str]], *, chains: bool = False) -> str:
    """What the model says. A chain of steps holds: a repair, a duplicate, prose, a leak, and a slower candidate.

    To runs of `chains`, as the first release made them, it says the same of equally fast parents.
    """
    first = messages[0]["content"]
    if messages[0]["role"] == "user":
        if "You may veto it" in first:
            return json.dumps({"veto": f"problem = {VETOED};" in first, "reason": "it only works on Sundays"})
        if "Propose changes" in first:
            return f"Here they are:\n```json\n{json.dumps({'changes': CHANGES})}\n```"
        return json.dumps({"state": "memory_bandwidth_saturated", "why": "because"})
    task = messages[1]["content"]
    problem = int(re.search(r"level1/(\d+)", task)[1])
    if "it will be published" in task:
        return _fenced(_source(LEAKING_US + 1, problem, "mended"))
    parent = re.search(r"# Kernel to improve\n```cuda\n(// kernel: us_(\d+)\n.*?)```", task, re.DOTALL)
    tried = len(re.findall(r"^- ", task.partition("Already tried ")[2], re.MULTILINE))
    technique = re.search("What to try(?: first)?: (.*)", task)[1]
    place = f"step {tried + 1}, {technique}"
    if not chains:  # what is made of two kernels is not the same source
        place += f", of {hashlib.sha256(parent[1].encode()).hexdigest()[:6]}"
    time = int(parent[2]) + (-15, -17, 5)[tried % 3]
    source = _source(time, problem, place)
    if tried % 3 == 0 and len(messages) == 2:
        return _fenced(f"int = 3;\n{source}")
    if tried % 3 == 1 and len(messages) == 2:
        return _fenced(parent[1])
    if tried % 3 == 1 and "That changes nothing" in messages[-1]["content"]:
        return "I would load four values at once."
    return _fenced(source)


def _fenced(source: str) -> str:
    return f"EXPECTED_SPEEDUP: 1.3\n```cuda\n{source}```\n"


def _source(time: int, problem: int, place: str) -> str:
    launcher = "void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim)"
    return f"// kernel: us_{time}\n// {place}\n{launcher} {{ int problem = {problem}; }}\n"
