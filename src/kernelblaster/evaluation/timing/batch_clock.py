"""Times batches of calls by the judge's own clock: a clock that no candidate reaches. `batch_rule` says what follows.

Candidate and baseline take turns, A B B A, on the same values, which are others in every batch. Slots are as many as
memory and time allow; nothing is read twice, so that where the inputs of a batch exceed the L2 it is as cold as for a
single call, and where they do not both sides find it equally warm. In one batch, secretly chosen, the judge has
references for the values of a few slots, the last one among them, and has their outputs judged afterwards: work that
is left out in batches, or put off until they are over, is wrong there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random, SystemRandom

import numpy as np

from kernelblaster.devices.base import BatchSession
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.results import Comparison
from kernelblaster.evaluation.timing.batch_rule import Allowance, Measured, confirmed, is_doubtful, times
from kernelblaster.problems.problem import TensorSpec

SLOT_SHARE = 0.25
"""Of the GPU's memory that the slots of both sides may take."""
MOST_CALLS, FEW_CALLS = 512, 96
"""Of a batch; the latter where a call makes so many launches that the former fill the GPU's queue of them."""
BATCH_US = 20_000.0
"""A batch is about as long, where memory and the queue of launches allow it."""
LEAST_ROUNDS, USUAL_ROUNDS, MOST_ROUNDS = 4, 6, 12
"""The least where calls take so long that time is up, the usual number, and that for the shortest calls."""
ENOUGH_US = 20_000.0
"""Of all batches of the candidate together, after which no more are made."""
MOST_SECONDS = 1.0
MOST_ISSUE_US = 4800.0
"""Host time of the launches of a batch: a GPU's queue holds about a thousand."""
_FIRST_CALLS, _MOST_BATCH_US = 4, 3 * BATCH_US
"""Of the first batch, and the longest later one by its time."""
_COVER, _COVER_US = 1.4, 100.0
"""Time of the fills over host time of the launches they cover, and what is added to that."""
_SLACK = (64 << 10, 16 << 20)


def slot_bytes(specs: Sequence[TensorSpec]) -> int:
    """Device memory of one slot: every tensor, and the room in which its address changes."""
    return sum(spec.bytes + int(np.clip(spec.bytes // 8, *_SLACK)) for spec in specs)


@dataclass(frozen=True)
class _Side:
    """One of the two, the number of its calls per batch, and what its batches took."""

    session: BatchSession
    calls: int
    batches: list[tuple[float, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class BatchClock:
    """Confirms the claim of one comparison in the processes that it was made in; the caller holds the device.

    Attributes:
        facts: of the device.
        slot_bytes: device memory of one slot.
        checked: perturbations that the judge has references for.
        look: keeps the outputs of the candidate's selected slot, which has this perturbation.
        random: where secrets come from.
        clock: seconds, monotonic.
    """

    facts: DeviceFacts
    slot_bytes: int
    checked: Sequence[int]
    look: Callable[[int], None]
    random: Random = field(default_factory=SystemRandom)
    clock: Callable[[], float] = time.monotonic

    def confirm(
        self, claimed: Comparison, candidate: BatchSession, baseline: BatchSession, allowance: Allowance
    ) -> Comparison:
        """The comparison with what batches say of it, asked twice where they say against it; see `batch_rule`.

        Raises ImpossibleTime, and RunFailure where a batch fails.
        """
        measured = [self.measure(claimed, candidate, baseline)]
        if is_doubtful(claimed, measured[0], allowance):
            measured.append(self.measure(claimed, candidate, baseline))
        return confirmed(claimed, measured, allowance)

    def measure(self, claimed: Comparison, candidate: BatchSession, baseline: BatchSession) -> Measured:
        """Time batches of both sides in turns, shorter ones where the launches of long ones show. Raises RunFailure."""
        long = self._measured(claimed, candidate, baseline, MOST_CALLS)
        if _hidden(long):
            return long
        short = self._measured(claimed, candidate, baseline, FEW_CALLS)
        return short if _hidden(short) else long

    def _measured(
        self, claimed: Comparison, candidate: BatchSession, baseline: BatchSession, most_calls: int
    ) -> Measured:
        sides = []
        issue_us = 0.0
        for session, timing in ((candidate, claimed.candidate), (baseline, claimed.baseline)):
            calls, issued = self._warm_up(session, min(most_calls, self._calls(timing.median_us)))
            sides.append(_Side(session, calls))
            issue_us = max(issue_us, issued)
        fills = math.ceil((_COVER * issue_us + _COVER_US) / self._fill_us)
        ours, theirs = sides
        empty: list[float] = []
        began, spent = self.clock(), 0.0
        judged = self.random.randrange(LEAST_ROUNDS)
        for round_ in range(MOST_ROUNDS):
            perturbations = [1 + self.random.getrandbits(62) for _ in range(max(ours.calls, theirs.calls))]
            if round_ == judged:
                perturbations = self._with_checked(perturbations, ours.calls)
            for side in (ours, theirs) if round_ % 2 == 0 else (theirs, ours):
                theirs.session.run_batch(0, 0)  # the GPU changes over to its process, which is no part of a batch
                empty.append(theirs.session.run_batch(0, fills).done_us)
                taken = self._run(side, perturbations, fills, float(np.median(empty)))
                spent += taken if side is ours else 0.0
                if side is ours and round_ == judged:
                    self._look_at(side, perturbations)
            late = self.clock() - began > MOST_SECONDS
            wanted = LEAST_ROUNDS if late else USUAL_ROUNDS
            if round_ + 1 >= wanted and (late or spent > ENOUGH_US):
                break
        return times(ours.batches, ours.calls, empty), times(theirs.batches, theirs.calls, empty)

    @property
    def has_room(self) -> bool:
        """Whether the GPU's memory holds a slot of either side; calls on more than that are too long to hide."""
        return self._room > 0

    @property
    def _room(self) -> int:
        return int(SLOT_SHARE * self.facts.memory_bytes / (2 * self.slot_bytes))

    @property
    def _fill_us(self) -> float:
        """Time of one fill, at least, in microseconds."""
        return 1e6 * 2 * self.facts.l2_bytes / self.facts.peak_bandwidth

    def _calls(self, call_us: float) -> int:
        """Calls of a batch whose calls take as long."""
        return max(1, min(self._room, MOST_CALLS, math.ceil(BATCH_US / call_us)))

    def _warm_up(self, session: BatchSession, calls: int) -> tuple[int, float]:
        """Calls of a batch of bounded length whose launches can be hidden, and the host's microseconds for these."""
        session.prepare_batch([1 + self.random.getrandbits(62) for _ in range(calls)])
        few = min(calls, _FIRST_CALLS)
        # How long calls take was said by the candidate's process until here.
        calls = max(1, min(calls, int(_MOST_BATCH_US * few / session.run_batch(few, 0).done_us)))
        session.run_batch(calls, 0)
        issued = session.run_batch(calls, 0).issued_us - session.run_batch(0, 0).issued_us
        fewer = max(1, min(calls, int(calls * MOST_ISSUE_US / max(issued, 1.0))))
        return fewer, min(max(issued, 0.0) * fewer / calls, MOST_ISSUE_US)

    def _run(self, side: _Side, perturbations: Sequence[int], fills: int, empty_us: float) -> float:
        """One batch of a side; the microseconds that its calls took."""
        side.session.prepare_batch(perturbations[: side.calls])
        batch = side.session.run_batch(side.calls, fills)
        taken = batch.done_us - empty_us
        side.batches.append((taken / side.calls, batch.issued_us < empty_us))
        return taken

    def _with_checked(self, perturbations: Sequence[int], calls: int) -> list[int]:
        """The perturbations with those that are judged at secret places, one of them the candidate's last."""
        chosen = list(perturbations)
        checked = list(self.checked)[:calls]
        self.random.shuffle(checked)
        places = [calls - 1, *self.random.sample(range(calls - 1), max(len(checked) - 1, 0))]
        for place, perturbation in zip(places, checked, strict=False):
            chosen[place] = perturbation
        return chosen

    def _look_at(self, side: _Side, perturbations: Sequence[int]) -> None:
        for slot, perturbation in enumerate(perturbations[: side.calls]):
            if perturbation in self.checked:
                side.session.select_slot(slot)
                self.look(perturbation)


def _hidden(measured: Measured) -> bool:
    """Whether launches of both sides were."""
    return all(side.hidden for side in measured)
