"""Is a candidate right? Calls it on input sets, with poisoned outputs, and compares every element.

All input sets of one size are given to one process, one after the other, by exchanging the bytes behind its inputs:
starting a process costs more than a call, and a kernel that keeps results between calls is found out. The first set
is called twice with different poison, so that what was never written, and what changes from call to call, shows.
The timed size is verified in the process that is timed: every timed call is poisoned anew, so the outputs it leaves are
its own, never those of a call that was verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kernelblaster.devices.base import Build, CallResult, Device, RunFailure, Session
from kernelblaster.evaluation.bench import Bench
from kernelblaster.evaluation.contest import Contest
from kernelblaster.evaluation.inputs import InputKey, InputSet, InputStore
from kernelblaster.evaluation.types import ErrorFigures, Verdict

POISON = 0xFF
"""NaN in every floating-point format, -1 in every integer."""
SECOND_POISON = 0x5B
"""A finite, unlikely number in every format."""
_POISONED = "outputs are filled with NaN before each call, so nothing may be added to what is there"


@dataclass
class Verification:
    """What calling a candidate on its input sets showed."""

    verdict: Verdict = Verdict.CORRECT
    reason: str = ""
    log: str = ""
    errors: list[ErrorFigures] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, verdict: Verdict, reason: str, log: str = "") -> None:
        """Record why the candidate is not correct."""
        self.verdict, self.reason, self.log = verdict, reason, log


class TimedCall(Protocol):
    """A candidate whose last call was timed: its process, its files and what it was given."""

    @property
    def bench(self) -> Bench: ...

    @property
    def drawn(self) -> InputSet: ...

    def candidate(self) -> Session:
        """The open process."""
        ...


@dataclass(frozen=True)
class Verifier:
    """Calls one build on input sets.

    Attributes:
        device: where it runs.
        inputs: where input sets come from.
        factor: c of the error budget.
        timeout_s: of each request to the candidate's process.
    """

    device: Device
    inputs: InputStore
    factor: float
    timeout_s: float

    def verify(self, build: Build, keys: Sequence[InputKey]) -> Verification:
        """Call a build on input sets of one size, in one process. Raises DeviceError and ProblemError."""
        found = Verification()
        with self.inputs.use(keys[0]) as first, Bench(self.inputs.directory, first) as bench:
            try:
                with self.device.open(build, bench.job, timeout_s=self.timeout_s) as session:
                    self._first(found, session, bench, first)
                    for key in keys[1:]:
                        if found.verdict is not Verdict.CORRECT:
                            break
                        self._next(found, build, session, bench, key)
            except RunFailure as failure:
                found.refuse(Verdict(failure.kind.value), failure.reason, failure.log)
        return found

    def verify_timed(self, contest: Contest) -> Verification:
        """Call the candidate of a contest, in the process that will be timed. Raises DeviceError."""
        found = Verification()
        try:
            self._first(found, contest.candidate(), contest.bench, contest.drawn)
        except RunFailure as failure:
            found.refuse(Verdict(failure.kind.value), failure.reason, failure.log)
        return found

    def check_timed(self, contest: TimedCall) -> Verification:
        """Judge the outputs that the last timed call, poisoned like any other, left behind. Raises RunFailure."""
        found = Verification()
        result = contest.candidate().fetch()
        judgement = self._judge(found, result, contest.bench, contest.drawn, POISON, record=False)
        if found.verdict is not Verdict.WRONG_VALUES:
            return found
        if judgement is not None and judgement.unwritten:
            found.refuse(Verdict.REWARD_HACK, f"a timed call did not do its work: {found.reason}")
        else:
            found.refuse(Verdict.NONDETERMINISTIC, f"right when verified, wrong when timed: {found.reason}")
        return found

    def _first(self, found: Verification, session: Session, bench: Bench, drawn: InputSet) -> None:
        self._judge(found, session.call(POISON), bench, drawn, POISON)
        if found.verdict is not Verdict.CORRECT:
            return
        self._repeat(found, session, bench, drawn)

    def _repeat(self, found: Verification, session: Session, bench: Bench, drawn: InputSet) -> None:
        """Call again on the same inputs over other poison and compare the bytes."""
        from kernelblaster.evaluation.compare import same_bytes

        kept = bench.keep_output()
        self._judge(found, session.call(SECOND_POISON), bench, drawn, SECOND_POISON, record=False)
        if found.verdict is Verdict.WRONG_VALUES:
            found.refuse(Verdict.NONDETERMINISTIC, f"right in one call, wrong in the next: {found.reason}")
        if found.verdict is not Verdict.CORRECT:
            return
        repeatable = same_bytes(kept, bench.output)
        kept.unlink()
        found.errors[-1].bitwise_repeatable = repeatable
        if not repeatable:
            found.warnings.append(
                f"{drawn.output.name} differs in its last bits from call to call (within budget): "
                "atomics or an unsynchronised order of summation"
            )

    def _next(self, found: Verification, build: Build, session: Session, bench: Bench, key: InputKey) -> None:
        """Exchange the inputs of the running process and call it; on failure, ask a fresh process."""
        with self.inputs.use(key) as drawn:
            bench.point_to(drawn)
            session.reload()
            self._judge(found, session.call(POISON), bench, drawn, POISON)
        if found.verdict is Verdict.WRONG_VALUES and self.verify(build, [key]).verdict is Verdict.CORRECT:
            found.refuse(
                Verdict.REWARD_HACK,
                "right in a fresh process, wrong once its inputs hold other values: "
                f"nothing computed from inputs or weights may be kept between calls ({found.reason})",
            )

    def _judge(
        self,
        found: Verification,
        result: CallResult,
        bench: Bench,
        drawn: InputSet,
        poison: int,
        *,
        record: bool = True,
    ) -> _Judgement | None:
        """Compare what a call left with the truth, and record the verdict if it is not correct."""
        if result.mutated_inputs:
            names = ", ".join(result.mutated_inputs)
            found.refuse(Verdict.INPUT_MUTATED, f"the call overwrote {names}: inputs and weights are read-only")
            return None
        spec, held = drawn.output, bench.output.stat().st_size if bench.output.exists() else 0
        if held != spec.bytes:
            found.refuse(Verdict.WRONG_SHAPE, f"{spec.name} holds {held} bytes, {spec.bytes} are asked for")
            return None
        judgement = _judge_output(bench, drawn, self.factor, poison)
        if record or not judgement.figures.passed:
            found.errors.append(judgement.figures)
        if record:
            found.warnings.extend(note for note in drawn.truth.notes if note not in found.warnings)
        if not judgement.figures.passed:
            found.refuse(Verdict.WRONG_VALUES, judgement.reason)
        return judgement


@dataclass(frozen=True)
class _Judgement:
    """Figures of one output, the line for a person, and whether elements were left unwritten."""

    figures: ErrorFigures
    reason: str
    unwritten: bool


def _judge_output(bench: Bench, drawn: InputSet, factor: float, poison: int) -> _Judgement:
    from kernelblaster.evaluation.budget import Budget
    from kernelblaster.evaluation.compare import compare, compare_exact

    truth, spec = drawn.truth, drawn.output
    if truth.scale is None:
        findings = compare_exact(bench.output, truth.reference, spec, poison)
    else:
        findings = compare(bench.output, truth.reference, Budget(spec, truth.scale, factor), poison)
    worst = findings.worst
    figures = ErrorFigures(
        tensor=spec.name,
        size=drawn.key.size,
        distribution=drawn.distribution,
        seed=drawn.key.seed,
        max_error=findings.max_error,
        norm_error=findings.norm_error,
        budget_ratio=findings.ratio,
        worst_index=worst.index if worst else None,
        expected=worst.expected if worst else None,
        got=worst.got if worst else None,
        passed=findings.passed,
    )
    if findings.passed:
        return _Judgement(figures, "", False)
    reason = f"size {drawn.key.size}, {drawn.distribution} inputs: {findings.describe()}"
    if findings.unwritten or findings.not_finite:
        reason = f"{reason} ({_POISONED})"
    return _Judgement(figures, reason, findings.unwritten > 0)
