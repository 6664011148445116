"""A search of two rollouts, as its events tell it."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.agent import events as ev
from kernelblaster.agent.files import ProblemFiles
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource
from kernelblaster.evaluation.results import Evaluation, Timing, Verdict
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.report.reading import ProblemRecord, steps_of

P = "level1/023"


def step(
    rollout: int, number: int, parent: str, candidate: str, outcome: str, speedup: float | None, gain: float
) -> list[ev.Event]:
    slot = f"{P}/r1/rollout-{rollout}/step-{number}"
    place = {"problem": P, "slot": slot}
    tried = {"problem": P, "slot": f"{slot}/attempt-0"}
    accepted = outcome == "faster"
    return [
        ev.StepStarted(**place, parent=parent, gain=1.0),
        ev.Selected(
            **place, state="dram_bound", technique="unroll", expected_speedup=1.1, p_correct=0.9, evidence_count=3
        ),
        ev.Generated(
            **tried, candidate=candidate, stated_speedup=1.3, reason="", prompt_tokens=1, completion_tokens=1,
            dollars=None,
        ),
        ev.Evaluated(
            **tried, candidate=candidate, verdict="correct" if speedup else outcome, reason="", speedup=speedup,
            decision=outcome if speedup else None, median_us=10.0 if speedup else None, reused=False,
        ),
        ev.Decided(**place, technique="unroll", outcome=outcome, accepted=accepted, gain=gain),
    ]  # fmt: skip


def profiled(
    sha256: str, *, instructions: float, read: float, ns: float, hot: str = "", us: float = 10.0
) -> Evaluation:
    metrics = {
        str(Metric.INSTRUCTIONS): instructions, str(Metric.DRAM_READ): read, str(Metric.DRAM_WRITE): 0.0,
        str(Metric.DURATION): ns,
    }  # fmt: skip
    notes = {"hot_lines": hot} if hot else {}
    kernel = KernelProfile(name="k(float*)", grid=(4, 1, 1), block=(256, 1, 1), metrics=metrics, notes=notes)
    timing = Timing(
        median_us=us, low_us=us, high_us=us, iqr_us=0, samples=1, floor_us=1, floor_fraction=1 / us, modelled=True
    )
    return Evaluation(
        problem=P, source_sha256=sha256, verdict=Verdict.CORRECT, reason="", device=DeviceKind.EMULATED,
        device_name="t", arch="sm_90", precision=Precision.FP16, workload=StandardWorkload.SMALL, timing=timing,
        profile=Profile(source=ProfileSource.EMULATED, kernels=[kernel], totals=metrics),
    )  # fmt: skip


def record(root: Path, events: list[ev.Event], *, final: str | None = None, **evaluations: Evaluation) -> ProblemRecord:
    row = ProblemSummary(problem=P, name="Softmax", status=OutcomeStatus.IMPROVED, directory=root)
    return ProblemRecord(
        row=row, files=ProblemFiles(root), start="start", final=final, steps=tuple(steps_of(events)),
        rounds={1: "start"}, evaluations=evaluations, finalists=(), baseline=None,
    )  # fmt: skip


def recalled(decision: str | None = "faster", speedup: float | None = 2.0) -> ev.Recalled:
    """Kernel `known` of the knowledge base, judged against the start."""
    accepted = decision == "faster"
    return ev.Recalled(
        problem=P, slot=f"{P}/recall", core="core-1", start="start", candidate="known",
        verdict="correct" if speedup else "wrong_values", speedup=speedup, decision=decision, median_us=5.0,
        accepted=accepted, reason="" if accepted else "it is refused",
    )  # fmt: skip


def two_rollouts() -> list[ev.Event]:
    """Rollout 0: a, slower b, then c on a. Rollout 1: wrong values."""
    return [
        *step(0, 1, "start", "a", "faster", 2.0, 2.0),
        *step(0, 2, "a", "b", "slower", 0.5, 2.0),
        *step(0, 3, "a", "c", "faster", 1.5, 3.0),
        *step(1, 1, "start", "d", "wrong_values", None, 1.0),
    ]
