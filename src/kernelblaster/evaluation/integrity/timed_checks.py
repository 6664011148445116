"""Chooses the perturbations whose timed calls are judged: their references are there, and a stale result would show."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from kernelblaster.devices.base import UNPERTURBED
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.verify import Verification, Verifier
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.perturbations import CHECKED, PerturbationSchedule, derived_perturbation
from kernelblaster.evaluation.processes.timed_pair import KeptCall
from kernelblaster.problems.problem import TensorRole

MEMORY_SHARE = 0.6
"""Of the GPU's memory that two processes with changing values may take."""
_ATTEMPTS = 3
_STALE = "the result hardly changes from one timed call to the next: a stale one would not show"


class TimedCalls(Protocol):
    """A running candidate, what it was given, and what was kept of its timed calls."""

    @property
    def drawn(self) -> InputSet: ...

    @property
    def kept(self) -> list[KeptCall]: ...

    def look(self, perturbation: int) -> None:
        """Keep what the last call left. Raises RunFailure."""
        ...


@dataclass
class Looks:
    """Keeps what the judged calls of one comparison left.

    Outputs of a judged call are copied before the next call, which would overwrite them. Those of the last call of all
    lie there for as long as nobody calls: they are copied by `finish`, when the device need not be held alone any more.
    """

    calls: TimedCalls
    schedule: PerturbationSchedule
    _last: int | None = None

    def __call__(self, perturbation: int) -> None:
        """A call on this perturbation has returned. Raises RunFailure."""
        if self.schedule.exhausted:
            self._last = perturbation
        else:
            self.calls.look(perturbation)

    def finish(self) -> None:
        """Keep what the last call left, if it was not yet. Where values do not change, no other is judged.

        Raises RunFailure.
        """
        last, self._last = self._last, None
        if not self.schedule.changing:
            self.calls.look(UNPERTURBED)
        elif last is not None:
            self.calls.look(last)


@dataclass(frozen=True)
class TimedChecks:
    """What is judged of the timed calls of one problem.

    Attributes:
        perturbations: their calls are judged; none where values cannot change, then the last call is.
        changing: whether values and addresses change from call to call.
        notes: what a reader of the evaluation must know.
    """

    perturbations: tuple[int, ...]
    changing: bool
    notes: tuple[str, ...] = ()

    def schedule(self) -> PerturbationSchedule:
        """Secret places for the perturbations; new ones for every comparison."""
        return PerturbationSchedule(self.perturbations, changing=self.changing)

    def looks(self, calls: TimedCalls) -> Looks:
        """For one comparison: a schedule, and what keeps the outputs of its judged calls."""
        return Looks(calls, self.schedule())

    def finish(self, calls: TimedCalls) -> None:
        """Keep the last call where no other was: then the candidate is not needed any more. Raises RunFailure."""
        if not self.changing:
            calls.look(UNPERTURBED)

    def judge(self, verifier: Verifier, calls: TimedCalls) -> Verification:
        """Judge what timed calls left. Raises DeviceError and ProblemError."""
        found = verifier.check_timed(calls.drawn, calls.kept)
        calls.kept.clear()
        found.warnings.extend(self.notes)
        return found


def choose_checks(
    inputs: InputStore, timed: InputKey, facts: DeviceFacts, secret: int, factor: float, calls: int = CHECKED
) -> TimedChecks:
    """Choose perturbations of the timed set and have their references computed; on a GPU for so many calls.

    Raises ProblemError and DeviceError.
    """
    if not timed.judged:
        return TimedChecks((), changing=True)
    with ExitStack() as stack:
        chosen = [stack.enter_context(inputs.use(timed))]
        base = chosen[0]
        if _process_bytes(base) * 2 > MEMORY_SHARE * facts.memory_bytes and facts.kind is DeviceKind.CUDA:
            note = "timed calls share values and addresses: the GPU's memory does not hold changing ones beside them"
            return TimedChecks((), changing=False, notes=(note,))
        notes: tuple[str, ...] = ()
        wanted = 1 if facts.kind is DeviceKind.EMULATED else calls
        if wanted > 1 and not _has_room(inputs, base, wanted):
            wanted, notes = 1, ("one timed call is judged: there is no room for the outputs of more",)
        for place in range(wanted):
            for attempt in range(_ATTEMPTS):
                perturbation = derived_perturbation(secret, f"{timed.name}/{place}/{attempt}")
                with ExitStack() as lent:
                    drawn = lent.enter_context(inputs.use(replace(timed, perturbation=perturbation)))
                    shows = _shows_all(drawn, chosen, factor)
                    if shows or attempt == _ATTEMPTS - 1:
                        chosen.append(drawn)
                        stack.push(lent.pop_all())
                        break
            if not shows:
                notes += (_STALE,) if _STALE not in notes else ()
        return TimedChecks(tuple(drawn.key.perturbation for drawn in chosen[1:]), changing=True, notes=notes)


def _shows_all(drawn: InputSet, others: Sequence[InputSet], factor: float) -> bool:
    """Whether the result of any other set, of which all is known, would be refused for this one."""
    from kernelblaster.evaluation.correctness.compare import would_be_refused

    return all(
        any(
            would_be_refused(expected, stale.values, factor, ACCUMULATION)
            for expected, stale in zip(drawn.expected.tensors, other.expected.tensors, strict=True)
        )
        for other in others
        if all(tensor.pieces is None for tensor in other.expected.tensors)
    )


def _has_room(inputs: InputStore, drawn: InputSet, calls: int) -> bool:
    """Whether the outputs of the judged calls and of both processes can lie beside each other until they are judged."""
    outputs = sum(spec.bytes for spec in drawn.outputs)
    return (calls + 2) * outputs <= shutil.disk_usage(inputs.directory).free


def _process_bytes(drawn: InputSet) -> int:
    """Device memory of one harness process: inputs as drawn, altered and in their arenas, outputs in two places.

    A second arena of each is made where it takes little of what is free alone.
    """
    inputs = sum(spec.bytes for spec in drawn.specs if spec.role is not TensorRole.OUTPUT)
    return 3 * inputs + 2 * sum(spec.bytes for spec in drawn.outputs)
