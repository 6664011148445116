"""The kernels that the content trial starts from: parents of recorded H200 searches, with the profiles taken there."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from kernelblaster.devices.emulated.emulator import DEFAULT_GPU, gpu_named
from kernelblaster.devices.emulated.translation import device_facts
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals
from kernelblaster.evaluation.results import Evaluation, Timing, Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.families import OpFamily, family_of
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload

REPOSITORY = Path(__file__).parents[2]
PROFILES = REPOSITORY / "tests" / "fixtures" / "profiles" / "labelled.json"
RECORDINGS = ("h200.jsonl.gz", "h200_transfer.jsonl.gz")
WORKLOAD = StandardWorkload.MEDIUM
"""What the recorded searches timed and profiled."""
PRECISION = Precision.FP16
LEAST_SHARE, GREATEST_SHARE = 0.10, 0.75
"""Attainable time over that of the parent: the middle of a search, where something is left and something was done."""
_PARENT = re.compile(r"^# Kernel to improve\n```cuda\n(.*?)\n```\n", re.MULTILINE | re.DOTALL)


class ProfiledCall(BaseModel):
    """A call of a parent as the search profiled it."""

    id: str
    us: float | None = None
    attainable_us: float | None = None
    kernels: list[KernelProfile] = []

    @property
    def share(self) -> float:
        """Attainable time over its own; 0 where either is unknown."""
        return self.attainable_us / self.us if self.us and self.attainable_us else 0.0


@dataclass(frozen=True)
class Parent:
    """A kernel to improve: its problem, its source, and its call as it was profiled on an H200."""

    id: str
    problem: Problem
    source: str
    call: ProfiledCall

    @property
    def family(self) -> OpFamily:
        """Operator family, by which results are resampled."""
        return family_of(self.problem.reference_path)

    def evaluation(self, facts: DeviceFacts, sha256: str) -> Evaluation:
        """What a search would have of it."""
        us, attainable_us = self.call.us, self.call.attainable_us
        assert us is not None
        timing = Timing(
            median_us=us, low_us=us, high_us=us, iqr_us=0, samples=1, floor_us=None, floor_fraction=None,
            attainable_us=attainable_us, modelled=False,
        )  # fmt: skip
        profile = Profile(source=ProfileSource.NCU, kernels=self.call.kernels, totals=totals(self.call.kernels))
        return Evaluation(
            problem=str(self.problem.id), source_sha256=sha256, verdict=Verdict.CORRECT, reason="", device=facts.kind,
            device_name=facts.name, arch=facts.arch, precision=PRECISION, workload=WORKLOAD, timing=timing,
            profile=profile,
        )  # fmt: skip


def h200_facts() -> DeviceFacts:
    """The GPU of the recorded searches, as prompts tell it."""
    modelled = device_facts(gpu_named(DEFAULT_GPU), None)
    return modelled.model_copy(update={"kind": DeviceKind.CUDA, "name": "NVIDIA H200"})


def parents() -> list[Parent]:
    """All parents in the middle of a recorded search, by their ids. Raises ProblemError."""
    return [one for one in profiled_parents() if LEAST_SHARE <= one.call.share <= GREATEST_SHARE]


def profiled_parents() -> list[Parent]:
    """Every kernel that a recorded search asked to improve and whose profile was kept, by id. Raises ProblemError."""
    held = json.loads(PROFILES.read_text(encoding="utf-8"))["profiles"]
    calls = {call.id: call for call in TypeAdapter(list[ProfiledCall]).validate_python(held)}
    dataset = data_dir() / "kernelbench-cuda"
    found: dict[str, Parent] = {}
    for name, problem, source in _shown():
        call = calls.get(name)
        if call is not None:
            found.setdefault(name, Parent(name, find_problem(problem, dataset), source, call))
    return [found[name] for name in sorted(found)]


def _shown() -> Iterator[tuple[str, str, str]]:
    """Id, problem and source of every kernel that a recorded prompt asked to improve."""
    for recording in RECORDINGS:
        with gzip.open(data_dir() / "recordings" / recording, "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                exchange = json.loads(line)
                if exchange["purpose"] == "generate":
                    problem, digest = exchange["tags"]["problem"], exchange["tags"]["parent_sha256"]
                    told = _PARENT.search(exchange["messages"][-1]["content"])
                    if told is not None:
                        yield f"{problem}/{digest[:8]}", problem, told[1]
