"""Judges planted kernels: each goes through `Evaluator`, as any candidate of a search does.

`Court.judge` holds the device as a search does: alone, on a GPU. `Court.judge_in_company` finds out beside others that
do the same what does not depend on times: the values of verified calls, and of an honest kernel those of timed ones.
What that leaves open is judged alone.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self

from planted import ADVERSARIAL, HARMLESS, Kind, Planted
from pydantic import BaseModel

import kernelblaster
from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.forwarding import ForwardingDevice
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Problem
from kernelblaster.runs.evaluations import find_problem

TIMING_SECONDS = 1.0
"""Per comparison: planted effects are large."""
SEED = 20_260_801
"""Of the input values; a run of the product draws a secret one."""
_JUDGING = ("evaluation", "devices", "sandbox", "problems", "cuda_source", "python_candidates")
"""Packages that decide a verdict."""
_NOT_JUDGING = tuple(
    Path("problems", name) for name in ("interchange", "families.py", "sound_reference.py", "peak_memory.py")
)
"""Of these, what makes problem directories of other forms, what tells a search which operations are alike, and what
looks at a reference before any kernel of it is judged."""
JUDGES = Path(__file__).with_name("judges.json")
"""Digest of a judge's code, as rows have it -> the day of its first row."""


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
    stages: dict[str, float] = {}
    """Wall seconds of each stage, waiting for the device not included."""
    digest: str = ""
    """Of the kernel and its twin as they were judged; empty in records of earlier versions."""
    judge: str = ""
    """Of the judge's code; empty in records of earlier versions."""

    @classmethod
    def of(cls, planted: Planted, device: DeviceKind, **became: object) -> Self:
        """What became of a planted kernel on a device; the header says the rest."""
        told = {
            "name": planted.name,
            "kind": planted.kind,
            "row": planted.row,
            "problem": planted.problem,
            "precision": planted.precision,
            "size": planted.size_on(device),
            "does": planted.does,
            "expected": sorted(planted.expected[device]),
            "gap": planted.gaps.get(device, ""),
        }
        return cls.model_validate(told | became)

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


class InCompany(ForwardingDevice):
    """A device that nobody holds alone: many judge on it at once, and none of their times counts."""

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[bool]:
        """Share the inner device."""
        with self.inner.shared():
            yield True


class Court:
    """Evaluators for planted kernels on one device. Safe for many threads.

    Args:
        device: where they run.
        inputs: input sets, owned by the caller.
    """

    def __init__(self, device: Device, inputs: InputStore) -> None:
        self._device = device
        self._shared = InCompany(device)
        self._inputs = inputs
        self._problems: dict[str, Problem] = {}
        self._evaluators: dict[tuple[object, ...], Evaluator] = {}
        self._lock = threading.Lock()

    def judge(self, planted: Planted) -> TrustRow:
        """Evaluate one planted kernel. A failure of the machine is an outcome here, and never a right one."""
        return self._judge(planted, self._device, Tier.FULL)

    def judge_in_company(self, planted: Planted) -> TrustRow:
        """As `judge`, beside others; an exploit is verified and not timed.

        What is right here stays right alone: a refused exploit was refused for what it does, and an honest kernel that
        passes has passed in spite of the others.
        """
        tier = Tier.FULL if planted.kind is Kind.HONEST else Tier.CORRECT
        return self._judge(planted, self._shared, tier)

    def judge_beside_others(self, planted: Planted) -> TrustRow:
        """As `judge`, but others may be verified meanwhile, and nobody while it is timed."""
        return self._judge(planted, self._device, Tier.FULL, trusted=True)

    def _judge(self, planted: Planted, device: Device, tier: Tier, *, trusted: bool = False) -> TrustRow:
        began = time.monotonic()
        evaluation: Evaluation | None = None
        try:
            problem = self._problem(planted.problem)
            evaluator = self._evaluator(planted, device, trusted=trusted)
            twin = _twin(planted, problem)
            evaluation = evaluator.evaluate(problem, planted.source, baseline=twin, profile=False, tier=tier)
            outcome, reason = _outcome(planted, problem, evaluation, evaluator)
        except KernelBlasterError as error:
            outcome, reason = type(error).__name__, str(error)
        comparison = None if evaluation is None else evaluation.comparison
        return TrustRow.of(
            planted,
            device.facts.kind,
            outcome=outcome,
            reason=reason[:300],
            speedup=comparison.speedup if comparison else None,
            low=comparison.low if comparison else None,
            high=comparison.high if comparison else None,
            seconds=time.monotonic() - began,
            stages={} if evaluation is None else {name: round(s, 2) for name, s in evaluation.seconds.items()},
            digest=digest(planted),
            judge=judge_digest(),
        )

    def _evaluator(self, planted: Planted, device: Device, *, trusted: bool) -> Evaluator:
        sets = EvaluationConfig().input_sets if planted.sets is None else planted.sets
        config = EvaluationConfig(
            timeout_s=planted.timeout_s, max_seconds_timing=TIMING_SECONDS, input_sets=sets, in_company=trusted
        )
        size = planted.size_on(device.facts.kind)
        libraries, precision = planted.libraries, planted.precision
        key = (device, planted.timeout_s, sets, size, libraries, precision, trusted)
        with self._lock:  # what an evaluator finds out about a problem holds for all kernels
            if key not in self._evaluators:
                self._evaluators[key] = Evaluator(
                    device, self._inputs, config, size, libraries, precision=precision, seed=SEED
                )
            return self._evaluators[key]

    def _problem(self, name: str) -> Problem:
        with self._lock:
            if name not in self._problems:
                directory = ADVERSARIAL.parent.parent / name  # of another data set
                self._problems[name] = find_problem(str(directory) if directory.is_dir() else name, RunConfig())
            return self._problems[name]


def _outcome(planted: Planted, problem: Problem, evaluation: Evaluation, evaluator: Evaluator) -> tuple[str, str]:
    if evaluation.verdict is not Verdict.CORRECT or planted.kind is Kind.HONEST or evaluation.tier is not Tier.FULL:
        return evaluation.verdict.value, evaluation.reason
    if Verdict.SANITIZER_ERROR in planted.expected[evaluation.device]:
        findings = evaluator.sanitize(problem, planted.source)
        if findings:
            return Verdict.SANITIZER_ERROR.value, f"{findings[0].tool}: {findings[0].message}"
    comparison = evaluation.comparison
    if comparison is not None and comparison.decision is not Decision.FASTER:
        return HARMLESS, f"{comparison.speedup:.3f} times the speed of its twin"
    return evaluation.verdict.value, "; ".join(evaluation.warnings)


def _twin(planted: Planted, problem: Problem) -> str | None:
    return problem.init_path.read_text(encoding="utf-8") if planted.twin == "init" else planted.twin_source


def digest(planted: Planted) -> str:
    """Of a kernel with its header, and of its twin where that is planted, too."""
    twin = planted.twin_source or ""
    return hashlib.sha256(f"{len(planted.source)} {planted.source} {twin}".encode()).hexdigest()[:16]


@cache
def judge_digest() -> str:
    """Of the code that decides verdicts."""
    root = Path(kernelblaster.__file__).parent
    state = hashlib.sha256()
    for path in sorted(path for name in _JUDGING for path in (root / name).rglob("*") if path.is_file()):
        name = path.relative_to(root)
        if "__pycache__" not in name.parts and not any(map(name.is_relative_to, _NOT_JUDGING)):
            state.update(f"{name} ".encode() + path.read_bytes())
    return state.hexdigest()[:16]
