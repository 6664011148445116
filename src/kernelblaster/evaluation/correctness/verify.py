"""Is a candidate right? Calls it on input sets, with poisoned outputs, and compares every element of every output.

All input sets of one size are given to one process, one after the other, by exchanging the bytes behind its inputs:
starting a process costs more than a call, and a kernel that keeps results between calls is found out. The first set
is called twice with different poison, so that what was never written, and what changes from call to call, shows.
The timed size is verified in the process that is timed, and some of the timed calls are judged, too (`perturbations`
says which): each finds other values at other addresses, its outputs poisoned with one pattern or the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelblaster.devices.base import UNPERTURBED, CallResult, Candidate, Device, Session
from kernelblaster.devices.failures import RunFailure
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.inputs.distributions import accumulation
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.processes.candidate_process import CandidateProcess
from kernelblaster.evaluation.processes.timed_pair import KeptCall, TimedPair
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.evaluation.results import ErrorFigures, Verdict
from kernelblaster.problems.problem import TensorSpec

if TYPE_CHECKING:
    from kernelblaster.evaluation.correctness.findings import Findings

POISON = 0xFF
"""NaN in every floating-point format, -1 in every signed integer, no flag."""
SECOND_POISON = 0x5B
"""A finite, unlikely number in every format."""
AROUND = "around:"
"""Begins the harness' name for bytes next to a tensor."""
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

    def fail(self, failure: RunFailure, key: InputKey) -> None:
        """Record that a call ended the candidate's process, or did not end, on an input set of `key`'s size."""
        self.refuse(Verdict(failure.kind.value), f"size {key.workload}: {failure.reason}", failure.log)


@dataclass(frozen=True)
class Verifier:
    """Calls one build on input sets.

    Attributes:
        device: where it runs.
        inputs: where input sets come from.
        factor: c of the error budget.
        timeout_s: of each request to the candidate's process.
        all_sets: count how many sets a candidate with wrong values passes, instead of stopping at the first it fails.
    """

    device: Device
    inputs: InputStore
    factor: float
    timeout_s: float
    all_sets: bool = False

    def start(self, candidate: Candidate, key: InputKey) -> CandidateProcess:
        """A process of a candidate that begins to start on an input set. Raises DeviceError and ProblemError."""
        with self.inputs.use(key) as drawn:
            return CandidateProcess(self.device, candidate, Workspace(self.inputs.directory, drawn), self.timeout_s)

    def verify(self, process: CandidateProcess, keys: Sequence[InputKey], loads: int = 1) -> Verification:
        """Call a candidate on input sets of one size, the first of which its process was started on.

        Tensors lie at other addresses after every second load of values; the first set is called where it lies after so
        many `loads`. The process begins to end when this returns. Raises DeviceError and ProblemError.
        """
        found = Verification()
        try:
            session = process.session()
            with self.inputs.use(keys[0]) as first:
                if loads % 2 == 0:
                    session.reload()
                self._first(found, session, process.workspace, first)
            for load, key in enumerate(keys[1:], start=loads + 1):
                if found.verdict is Verdict.CORRECT:
                    self._next(found, process, key, load)
                elif found.verdict is Verdict.WRONG_VALUES and self.all_sets:
                    found.errors += self._figures_of(process, key)
                else:
                    break
        except RunFailure as failure:
            if found.verdict is Verdict.CORRECT:  # else it was counted on, and is refused already
                found.fail(failure, keys[0])
        process.end()
        return found

    def verify_timed(self, pair: TimedPair[InputSet]) -> Verification:
        """Call the candidate of a timed pair, in the process that will be timed. Raises DeviceError."""
        found = Verification()
        try:
            self._first(found, pair.candidate(), pair.workspace, pair.drawn)
        except RunFailure as failure:
            found.fail(failure, pair.drawn.key)
        return found

    def check_timed(self, base: InputSet, calls: Sequence[KeptCall]) -> Verification:
        """Judge what timed calls on perturbations of an input set left. Raises DeviceError and ProblemError."""
        # At once: one thread does not fill the link to the GPU.
        with ThreadPoolExecutor(max(len(calls), 1), thread_name_prefix="judge") as threads:
            each = list(threads.map(lambda call: self._check_kept(call, base), calls))
        for call in calls:
            for output in call.outputs.values():
                output.unlink(missing_ok=True)
        return next((found for found in each if found.verdict is not Verdict.CORRECT), Verification())

    def _check_kept(self, call: KeptCall, base: InputSet) -> Verification:
        found, poison = Verification(), SECOND_POISON if call.perturbation % 2 else POISON
        with self.inputs.use(replace(base.key, perturbation=call.perturbation)) as drawn:
            judgement = self._judge(found, call.result, call.outputs, drawn, poison, record=False)
        if found.verdict is not Verdict.WRONG_VALUES or judgement is None:
            return found
        if judgement.unwritten:
            found.refuse(Verdict.REWARD_HACK, f"a timed call did not do its work: {found.reason}")
        elif call.perturbation != UNPERTURBED and _judge_outputs(call.outputs, base, self.factor, poison).passed:
            found.refuse(
                Verdict.REWARD_HACK,
                f"a timed call gave the result of other inputs than it was called with: {found.reason}",
            )
        else:
            found.refuse(Verdict.NONDETERMINISTIC, f"right when verified, wrong when timed: {found.reason}")
        return found

    def _first(self, found: Verification, session: Session, workspace: Workspace, drawn: InputSet) -> None:
        self._judge(found, session.call(POISON), workspace.outputs, drawn, POISON)
        if found.verdict is not Verdict.CORRECT:
            return
        self._repeat(found, session, workspace, drawn)

    def _repeat(self, found: Verification, session: Session, workspace: Workspace, drawn: InputSet) -> None:
        """Call again on the same inputs over other poison; what is not the same bytes is judged once more."""
        from kernelblaster.evaluation.correctness.compare import same_bytes

        kept = workspace.keep_outputs()
        result = session.call(SECOND_POISON)
        changed = [name for name, path in kept.items() if not same_bytes(path, workspace.outputs[name])]
        if changed or result.mutated_inputs:
            self._judge(found, result, workspace.outputs, drawn, SECOND_POISON, record=False)
        workspace.reuse(kept)
        if found.verdict is Verdict.WRONG_VALUES:
            found.refuse(Verdict.NONDETERMINISTIC, f"right in one call, wrong in the next: {found.reason}")
        if found.verdict is not Verdict.CORRECT:
            return
        for figures in found.errors[-len(kept) :]:
            figures.bitwise_repeatable = figures.tensor not in changed
        found.warnings.extend(_unrepeatable(spec) for spec in drawn.outputs if spec.name in changed)

    def _figures_of(self, process: CandidateProcess, key: InputKey) -> list[ErrorFigures]:
        """Errors of a candidate that is refused already, on one more input set; it can only count for less."""
        counted = Verification()
        with self.inputs.use(key) as drawn:
            process.workspace.point_to(drawn)
            process.session().reload()
            self._judge(counted, process.session().call(POISON), process.workspace.outputs, drawn, POISON)
        return counted.errors

    def _next(self, found: Verification, process: CandidateProcess, key: InputKey, loads: int) -> None:
        """Exchange the inputs of the running process and call it; on failure, ask a fresh process.

        It is the process's load of that number, and the fresh one finds its tensors at as good addresses.
        """
        session, workspace = process.session(), process.workspace
        with self.inputs.use(key) as drawn:
            workspace.point_to(drawn)
            session.reload()
            self._judge(found, session.call(POISON), workspace.outputs, drawn, POISON)
        if found.verdict is not Verdict.WRONG_VALUES:
            return
        with self.start(process.candidate, key) as fresh:
            again = self.verify(fresh, [key], loads)
        if again.verdict is Verdict.CORRECT:
            found.refuse(
                Verdict.REWARD_HACK,
                "right in a fresh process, wrong once its inputs hold other values: "
                f"nothing computed from inputs or weights may be kept between calls ({found.reason})",
            )

    def _judge(
        self,
        found: Verification,
        result: CallResult,
        outputs: Mapping[str, Path],
        drawn: InputSet,
        poison: int,
        *,
        record: bool = True,
    ) -> _Judgement | None:
        """Compare what a call left with the reference, and record the verdict if it is not correct."""
        if result.mutated_inputs:
            found.refuse(*_damage(result.mutated_inputs))
            return None
        for spec in drawn.outputs:
            held = outputs[spec.name].stat().st_size if outputs[spec.name].exists() else 0
            if held != spec.bytes:
                found.refuse(Verdict.WRONG_SHAPE, f"{spec.name} holds {held} bytes, {spec.bytes} are asked for")
                return None
        judgement = _judge_outputs(outputs, drawn, self.factor, poison)
        found.errors.extend(figures for figures in judgement.figures if record or not figures.passed)
        if record:
            found.warnings.extend(note for note in drawn.expected.notes if note not in found.warnings)
        if not judgement.passed:
            found.refuse(Verdict.WRONG_VALUES, judgement.reason)
        return judgement


@dataclass(frozen=True)
class _Judgement:
    """Figures of every output, the line for a person, and whether elements of one were left unwritten."""

    figures: tuple[ErrorFigures, ...]
    reason: str
    unwritten: bool

    @property
    def passed(self) -> bool:
        """Whether every output is right."""
        return all(figures.passed for figures in self.figures)


def _damage(names: Sequence[str]) -> tuple[Verdict, str]:
    """The verdict on a call that wrote what it must not, and why."""
    around = [name.removeprefix(AROUND) for name in names if name.startswith(AROUND)]
    inside = [name for name in names if not name.startswith(AROUND)]
    if inside:
        return Verdict.INPUT_MUTATED, f"the call overwrote {', '.join(inside)}: inputs and weights are read-only"
    return Verdict.SANITIZER_ERROR, f"the call wrote before the beginning or beyond the end of {', '.join(around)}"


def _unrepeatable(spec: TensorSpec) -> str:
    """The warning for an output that is right in each of two calls and not the same."""
    if not spec.dtype.is_floating_point:
        return f"{spec.name} differs from call to call among equally good answers"
    return (
        f"{spec.name} differs in its last bits from call to call (within budget): "
        "atomics or an unsynchronised order of summation"
    )


def _judge_outputs(outputs: Mapping[str, Path], drawn: InputSet, factor: float, poison: int) -> _Judgement:
    """Compare every output; what is said of a wrong candidate is of the first wrong one."""
    from kernelblaster.evaluation.correctness.compare import compare_output

    loss, judge_nan = accumulation(drawn.distribution), not drawn.infinite
    each = [
        compare_output(outputs[tensor.spec.name], tensor, factor, loss, poison, judge_nan=judge_nan)
        for tensor in drawn.expected.tensors
    ]
    figures = tuple(_figures(findings, drawn) for findings in each)
    wrong = next((findings for findings in each if not findings.passed), None)
    if wrong is None:
        return _Judgement(figures, "", False)
    reason = f"size {drawn.key.workload}, {drawn.distribution} inputs: {wrong.describe()}"
    if wrong.unwritten or wrong.not_finite:
        reason = f"{reason} ({_POISONED})"
    return _Judgement(figures, reason, any(findings.unwritten > 0 for findings in each))


def _figures(findings: Findings, drawn: InputSet) -> ErrorFigures:
    worst = findings.worst
    return ErrorFigures(
        tensor=findings.spec.name,
        workload=drawn.key.workload,
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
