"""What containing a candidate costs: seconds to its first answer, with and without the system-call filter, in turns.

    python benchmarks/containment_cost.py --device emulated|cuda [--starts N] [--json FILE]

Each start is a fresh process of the start kernel of level1/19 at its small size, fp32, from asking for the process to
the outputs of its first call. The difference of the medians is the cost per process; its spread is the interquartile
range of the differences of neighbours.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from pydantic import BaseModel

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Build, Device, Job
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.evaluations import find_problem

TIMEOUT_S = 60.0


class ContainmentCost(BaseModel):
    """Milliseconds from asking for a process to the outputs of its first call, per start."""

    format: str = "kernelblaster-containment-1"
    device: DeviceFacts
    contained_ms: list[float]
    uncontained_ms: list[float]
    filter_us: list[float]
    """What putting up the filter took, as the harness says."""

    @property
    def differences_ms(self) -> list[float]:
        """Contained minus uncontained, of neighbours."""
        return [one - other for one, other in zip(self.contained_ms, self.uncontained_ms, strict=True)]

    def describe(self) -> str:
        """One line."""
        low, middle, high = statistics.quantiles(self.differences_ms, n=4)
        return (
            f"{self.device.name}: contained {statistics.median(self.contained_ms):.1f} ms, "
            f"uncontained {statistics.median(self.uncontained_ms):.1f} ms, difference {middle:.1f} ms "
            f"({low:.1f} to {high:.1f}, half of {len(self.contained_ms)} pairs); "
            f"the filter itself {statistics.median(self.filter_us):.0f} us"
        )


@contextmanager
def containing(wanted: bool, seen: list[float]) -> Iterator[None]:
    """Processes that load a candidate meanwhile are contained, or are not; `seen` gets what each filter took."""
    load = HarnessProcess.load

    def loaded(process: HarnessProcess) -> None:
        process._contain = wanted
        load(process)
        if wanted:
            seen.append(process.containment.microseconds)

    with mock.patch.object(HarnessProcess, "load", loaded):
        yield


def first_answer_ms(device: Device, build: Build, job: Job) -> float:
    """One start."""
    began = time.perf_counter()
    with device.open(build, job, timeout_s=TIMEOUT_S) as session:
        session.call(0)
        return 1e3 * (time.perf_counter() - began)


def measure(device: Device, starts: int) -> ContainmentCost:
    """So many starts of each kind, in turns, the first of each left out."""
    problem = find_problem("level1/19", RunConfig())
    cost = ContainmentCost(device=device.facts, contained_ms=[], uncontained_ms=[], filter_us=[])
    with InputStore() as inputs:
        size, precision = StandardWorkload.SMALL, Precision.FP32
        judge = Evaluator(device, inputs, EvaluationConfig(input_sets=2), size, precision=precision, seed=1)
        build = device.build(problem.init_path.read_text(encoding="utf-8"), device.prepare(problem, precision))
        with inputs.use(judge.plan(problem).timed) as drawn, Workspace(inputs.directory, drawn) as workspace:
            for _ in range(starts + 1):
                for wanted, taken in ((True, cost.contained_ms), (False, cost.uncontained_ms)):
                    with containing(wanted, cost.filter_us):
                        taken.append(first_answer_ms(device, build, workspace.job))
    for taken in (cost.contained_ms, cost.uncontained_ms, cost.filter_us):
        del taken[0]
    return cost


def main() -> None:
    """Measure, print one line, and write all starts as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], required=True)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = choose_device(RunConfig(device=options.device), lambda text: print(text, file=sys.stderr)).device
    cost = measure(device, options.starts)
    print(cost.describe())
    if options.json:
        options.json.write_text(cost.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
