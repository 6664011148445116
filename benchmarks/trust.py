"""Can the evaluation be fooled? Judges every planted exploit and honest kernel, and says which outcome was wrong.

    python benchmarks/trust.py --device emulated|cuda --json FILE
                               [--kind KIND] [--only PATTERN] [--folder DIR] [--workers N] [--minutes M]

Each kernel goes through `Evaluator`, as any candidate of a search does, with its twin as baseline where its header
names one. Exit status 1 when an exploit got through or an honest kernel was refused. `benchmarks/trust_page.py` makes
docs/trust.md of the JSON files of both devices.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from planted import HARMLESS, Kind, Planted, load_all, load_folder
from pydantic import BaseModel

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.problems.problem import Problem
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.evaluations import find_problem

TIMING_SECONDS = 1.0
"""Per comparison: planted effects are large."""
SEED = 20_260_801
"""Of the input values; a run of the product draws a secret one."""


class TrustRow(BaseModel):
    """What became of one planted kernel."""

    name: str
    kind: Kind
    row: str
    problem: str
    precision: str
    size: str
    does: str
    expected: list[str]
    gap: str = ""
    """Why the evaluation is known to miss it on this device."""
    outcome: str
    reason: str
    speedup: float | None = None
    """Against the twin, where it was timed against one."""
    low: float | None = None
    high: float | None = None
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the evaluation did what it should."""
        return self.outcome in self.expected

    @property
    def tolerated(self) -> bool:
        """Whether it is right, or a gap that is known and explained."""
        return self.right or bool(self.gap)


class TrustResult(BaseModel):
    """All outcomes on one device."""

    format: str = "kernelblaster-trust-1"
    device: DeviceFacts
    rows: list[TrustRow]
    not_run: list[str]
    """Names of kernels that this device cannot run."""
    not_judged: list[str] = []
    """Names of kernels for which there was no time."""
    seconds: float


class Court:
    """Evaluators for planted kernels on one device. Safe for many threads.

    Args:
        device: where they run.
        inputs: input sets, owned by the caller.
    """

    def __init__(self, device: Device, inputs: InputStore) -> None:
        self._device = device
        self._inputs = inputs
        self._problems: dict[str, Problem] = {}
        self._evaluators: dict[tuple[object, ...], Evaluator] = {}
        self._lock = threading.Lock()

    def judge(self, planted: Planted) -> TrustRow:
        """Evaluate one planted kernel. A failure of the machine is an outcome here, and never a right one."""
        began = time.monotonic()
        kind = self._device.facts.kind
        evaluation: Evaluation | None = None
        try:
            evaluation = self._evaluate(planted)
            outcome, reason = self._outcome(planted, evaluation)
        except KernelBlasterError as error:
            outcome, reason = type(error).__name__, str(error)
        comparison = None if evaluation is None else evaluation.comparison
        return TrustRow(
            name=planted.name,
            kind=planted.kind,
            row=planted.row,
            problem=planted.problem,
            precision=planted.precision,
            size=planted.size_on(kind),
            does=planted.does,
            expected=sorted(planted.expected[kind]),
            gap=planted.gaps.get(kind, ""),
            outcome=outcome,
            reason=reason[:300],
            speedup=comparison.speedup if comparison else None,
            low=comparison.low if comparison else None,
            high=comparison.high if comparison else None,
            seconds=time.monotonic() - began,
        )

    def _evaluate(self, planted: Planted) -> Evaluation:
        problem = self._problem(planted.problem)
        return self._evaluator(planted).evaluate(
            problem, planted.source, baseline=_twin(planted, problem), profile=False
        )

    def _outcome(self, planted: Planted, evaluation: Evaluation) -> tuple[str, str]:
        if evaluation.verdict is not Verdict.CORRECT or planted.kind is Kind.HONEST:
            return evaluation.verdict.value, evaluation.reason
        wanted = planted.expected[self._device.facts.kind]
        if Verdict.SANITIZER_ERROR in wanted:
            findings = self._evaluator(planted).sanitize(self._problem(planted.problem), planted.source)
            if findings:
                return Verdict.SANITIZER_ERROR.value, f"{findings[0].tool}: {findings[0].message}"
        comparison = evaluation.comparison
        if comparison is not None and comparison.decision is not Decision.FASTER:
            return HARMLESS, f"{comparison.speedup:.3f} times the speed of its twin"
        return evaluation.verdict.value, "; ".join(evaluation.warnings)

    def _evaluator(self, planted: Planted) -> Evaluator:
        config = EvaluationConfig(timeout_s=planted.timeout_s, max_seconds_timing=TIMING_SECONDS)
        size = planted.size_on(self._device.facts.kind)
        libraries, precision = planted.libraries, planted.precision
        key = (planted.timeout_s, size, libraries, precision)
        with self._lock:  # what an evaluator finds out about a problem holds for all kernels
            if key not in self._evaluators:
                self._evaluators[key] = Evaluator(
                    self._device, self._inputs, config, size, libraries, precision=precision, seed=SEED
                )
            return self._evaluators[key]

    def _problem(self, name: str) -> Problem:
        with self._lock:
            if name not in self._problems:
                self._problems[name] = find_problem(name, RunConfig())
            return self._problems[name]


def _twin(planted: Planted, problem: Problem) -> str | None:
    if planted.twin is None:
        return None
    if planted.twin == "init":
        return problem.init_path.read_text(encoding="utf-8")
    return (planted.twin_folder / f"{planted.twin}.cu").read_text(encoding="utf-8")


def judge_all(
    device: Device, planted: Sequence[Planted], workers: int, seconds: float | None = None
) -> Iterator[TrustRow]:
    """Judge planted kernels in parallel; rows come as they are ready, of the kernels begun within `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    with InputStore() as inputs, ThreadPoolExecutor(workers) as pool:
        court = Court(device, inputs)

        def in_time(item: Planted) -> TrustRow | None:
            late = deadline is not None and time.monotonic() > deadline
            return None if late else court.judge(item)

        for done in as_completed([pool.submit(in_time, item) for item in planted]):
            if (row := done.result()) is not None:
                yield row


def run(
    device: Device, planted: Sequence[Planted], workers: int, seconds: float | None, keep: Callable[[TrustResult], None]
) -> TrustResult:
    """Judge what the device can run, telling standard error about each; `keep` gets what there is after each."""
    began = time.monotonic()
    kind = device.facts.kind
    chosen = [item for item in planted if item.runs_on(kind)]
    rows: list[TrustRow] = []

    def result() -> TrustResult:
        judged = {row.name for row in rows}
        return TrustResult(
            device=device.facts,
            rows=sorted(rows, key=lambda row: (row.kind, row.name)),
            not_run=[item.name for item in planted if not item.runs_on(kind)],
            not_judged=[item.name for item in chosen if item.name not in judged],
            seconds=time.monotonic() - began,
        )

    for row in judge_all(device, chosen, workers, seconds):
        rows.append(row)
        mark = "ok  " if row.right else "gap " if row.gap else "FAIL"
        ratio = "" if row.speedup is None else f" ({row.speedup:.2f}x)"
        line = f"{mark} {time.monotonic() - began:6.1f} s {row.name}: {row.outcome}{ratio} {row.reason[:150]}"
        print(line, file=sys.stderr, flush=True)
        keep(result())
    return result()


def main() -> int:
    """Judge all, write the JSON file, and say what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--only", default="*", help="names to judge, as a shell pattern")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="exploits or honest kernels alone")
    parser.add_argument("--folder", type=Path, help="kernels that others wrote, in place of the planted ones")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8))
    parser.add_argument("--minutes", type=float, default=None, help="begin no kernel later than this")
    options = parser.parse_args()
    chosen = choose_device(RunConfig(device=options.device), lambda text: print(text, file=sys.stderr)).device
    kind = None if options.kind is None else Kind(options.kind)
    found = load_all(kind) if options.folder is None else load_folder(options.folder)
    planted = [item for item in found if kind in (None, item.kind) and fnmatch.fnmatch(item.name, options.only)]
    options.json.parent.mkdir(parents=True, exist_ok=True)

    def keep(result: TrustResult) -> None:
        options.json.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")

    seconds = None if options.minutes is None else 60 * options.minutes
    result = run(chosen, planted, options.workers, seconds, keep)
    keep(result)
    wrong = [row for row in result.rows if not row.tolerated]
    for row in wrong:
        print(f"{row.kind} {row.name}: {row.outcome}, expected {' or '.join(row.expected)}: {row.reason}")
    left = f"{len(result.not_run)} not run here, {len(result.not_judged)} not judged for want of time"
    print(f"{len(result.rows)} judged in {result.seconds:.0f} s, {len(wrong)} wrong, {left}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
