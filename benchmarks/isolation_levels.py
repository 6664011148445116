"""Which isolation works on this machine, what of the tools works under it, and what it costs per process.

    python benchmarks/isolation_levels.py [--json FILE]

For each level: whether a process can be isolated, milliseconds to start and end one, and, with a GPU, whether a kernel
is judged correct, ncu reads counters and compute-sanitizer reports (level1/19 at its small size).
A level at which a tool falls back to a weaker one says so. Without a GPU the emulated device stands in. Half a minute.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Device, profile_once
from kernelblaster.devices.cuda.device import CudaDevice
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.devices.emulated.device import EmulatedDevice
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.runs.evaluations import find_problem
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.limits import Limits
from kernelblaster.sandbox.process import Scratch, clean_environment, run, strongest, trial

STARTS = 21
TIMEOUT_S = 30.0


def start_ms(level: Isolation) -> float:
    """Median milliseconds from asking for a process to its end, of one that does nothing."""
    taken = []
    with Scratch() as scratch:
        for _ in range(STARTS):
            began = time.perf_counter()
            run(
                ["/bin/true"],
                timeout_s=TIMEOUT_S,
                limits=Limits(isolation=level),
                cwd=scratch,
                environment=clean_environment(scratch),
            )
            taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def attempt(what: Callable[[], str]) -> str:
    """What came of it, with the seconds that it took; the reason where it failed."""
    began = time.perf_counter()
    try:
        came = what()
    except Exception as error:  # whatever fails here is the finding
        came = f"FAILED: {type(error).__name__}: {error}"
    return f"{came} ({time.perf_counter() - began:.1f} s)"


class Tools:
    """A device under one level, and a kernel to try its tools on."""

    def __init__(self, level: Isolation, inputs: InputStore) -> None:
        limits = Limits(isolation=level)
        self.device: Device = (
            CudaDevice(CandidateRules(), limits=limits)
            if detect_gpu()
            else EmulatedDevice.create(policy=CandidateRules(), limits=limits)
        )
        self._inputs = inputs
        self._problem = find_problem("level1/19", RunConfig())
        self._source = self._problem.init_path.read_text(encoding="utf-8")
        self._judge = Evaluator(
            self.device,
            inputs,
            EvaluationConfig(input_sets=2),
            StandardWorkload.SMALL,
            precision=Precision.FP32,
            seed=1,
        )

    def evaluate(self) -> str:
        """Verdict, time, isolation."""
        found = self._judge.evaluate(self._problem, self._source, profile=False)
        time_us = f", {found.timing.median_us:.2f} us" if found.timing else ""
        return f"{found.verdict}{time_us}, isolation {found.isolation} {found.reason}"

    def profile(self) -> str:
        """Who profiled, and what it warned of."""
        harness = self.device.prepare(self._problem, Precision.FP32)
        build = self.device.build(self._source, harness)
        key = self._judge.plan(self._problem).timed
        with self._inputs.use(key) as drawn, Workspace(self._inputs.directory, drawn) as workspace:
            found = profile_once(self.device, build, workspace.job, timeout_s=TIMEOUT_S)
        return f"{found.source}, {len(found.kernels)} kernels {'; '.join(found.warnings)}"

    def sanitize(self) -> str:
        """Findings; none are expected."""
        findings = self._judge.sanitize(self._problem, self._source)
        return "; ".join(f"{one.tool}: {one.message}" for one in findings) or "clean"


def look_at(level: Isolation, inputs: InputStore) -> dict[str, str]:
    """Everything about one level."""
    refused = trial(level) if level.isolates else None
    if refused is not None:
        return {"works": f"no: {refused}"}
    tools = Tools(level, inputs)
    return {
        "works": "yes",
        "start": f"{start_ms(level):.1f} ms",
        "evaluate": attempt(tools.evaluate),
        "profile": attempt(tools.profile),
        "sanitize": attempt(tools.sanitize),
    }


def main() -> None:
    """Print one block per level; write them as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the findings to this file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="warning: %(message)s")
    support = strongest()
    print(f"strongest that works: {support.level}, network cut off: {support.network} {support.missing()}", flush=True)
    found: dict[str, dict[str, str]] = {}
    with InputStore() as inputs:
        if detect_gpu():
            print(
                f"the GPU is reached under: {attempt(lambda: str(CudaDevice(CandidateRules()).isolation))}", flush=True
            )
        for level in Isolation:
            try:
                found[level] = look_at(level, inputs)
            except KernelBlasterError as error:
                found[level] = {"works": f"no device: {error.message}"}
            print(f"{level}\n" + "\n".join(f"  {name}: {said}" for name, said in found[level].items()), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
