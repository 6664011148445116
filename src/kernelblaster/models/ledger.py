"""The cost ledger: every call to the model on one append-only file, and hard caps on their sum.

A cap is checked before each attempt to reach the model, retries included, against what is spent, plus what the calls in
flight and this one are expected to cost (`reservations.py`). A reply that is paid for is always handed over, even when
it passes a cap; `reached` tells so at once and the next call is refused. Spending and active time of earlier starts of
the same run count.

A reply that costs something lies in `arrived/` before its line is written (`arrivals.py`), so that a kill neither loses
the cost nor lets a reply be paid for twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.config import BudgetConfig
from kernelblaster.errors import BudgetExceeded, UsageError
from kernelblaster.models.arrivals import Arrival, Arrivals
from kernelblaster.models.base import Reply, Request, Usage
from kernelblaster.models.calls import CallLine, Line, SpendingTotals, StartLine
from kernelblaster.models.digests import request_digest
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line

ARRIVED = "arrived"
"""Folder beside the ledger."""
_log = logging.getLogger(__name__)


class Cap(StrEnum):
    """What is capped."""

    DOLLARS = "dollars"
    TOKENS = "tokens"
    MINUTES = "minutes"


_OPTION = {Cap.DOLLARS: "--max-dollars", Cap.TOKENS: "--max-tokens", Cap.MINUTES: "--max-minutes"}


class CapReached(BudgetExceeded):
    """A cap refuses the next call.

    Attributes:
        cap: which.
        limit: its value, in dollars, tokens or minutes.
        reached: spent, and committed by the calls in flight and the refused one, in the same unit.
        may_pass: calls in flight hold room of which their replies may leave some.
    """

    def __init__(self, cap: Cap, limit: float, reached: float, *, may_pass: bool = False) -> None:
        shown = f"{reached:.4f}" if cap is Cap.DOLLARS else f"{reached:.1f}" if cap is Cap.MINUTES else f"{reached:.0f}"
        super().__init__(
            f"the cap of {limit:g} {cap} is reached: {shown} {cap} spent or committed",
            hint=f"raise {_OPTION[cap]} and start the same command again; what is finished is kept",
        )
        self.cap = cap
        self.limit = limit
        self.reached = reached
        self.may_pass = may_pass


def require_price(caps: BudgetConfig, spent: SpendingTotals, *, known: bool, model: str, hint: str) -> None:
    """Refuse to ask while dollars are capped and cannot be counted.

    Args:
        caps: of the run.
        spent: by earlier calls of the run.
        known: whether the price of `model` is known.
        model: by name.
        hint: what makes its price known.

    Raises UsageError.
    """
    if caps.dollars is None:
        return
    capped = f"dollars are capped at {caps.dollars:g}"
    if not known:
        raise UsageError(f"{capped}, and the price of {model} is unknown", hint=hint)
    if spent.dollars is None:
        raise UsageError(
            f"{capped}, and earlier calls of this run had no known price",
            hint="cap --max-tokens, or begin anew under another name (run: --experiment)",
        )


class CostLedger:
    """Calls of one run. Safe to use from several threads of one process.

    Raises UsageError when the file holds something else.
    """

    def __init__(self, path: Path, caps: BudgetConfig, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._caps = caps
        self._clock = clock
        self._lock = threading.Lock()
        self._in_flight: list[Usage] = []
        self._held: dict[str, Usage] = {}
        self._arrivals = Arrivals(path.with_name(ARRIVED))
        lines = _load(path)
        for arrival in self._arrivals:
            if arrival.call not in lines:
                self._append(arrival.call)
                lines.append(arrival.call)
        self._calls = [line for line in lines if isinstance(line, CallLine)]
        self._earlier_seconds = _active_seconds(lines)
        self._sum = _total(self._calls)
        self._earlier_calls = len(self._calls)
        self._longest = max(
            (call.usage.completion_tokens for call in self._calls if call.outcome == "ok"), default=None
        )
        self._began = time.monotonic()
        self._append(StartLine(at=clock()))

    @property
    def calls(self) -> tuple[CallLine, ...]:
        """All calls, earlier starts included, oldest first."""
        return tuple(self._calls)

    @property
    def minutes(self) -> float:
        """Active wall time, over all starts; of a start that was cut off, up to its last call."""
        return (self._earlier_seconds + time.monotonic() - self._began) / 60

    def seconds_left(self) -> float | None:
        """Until the cap on wall time; None without one."""
        return None if self._caps.minutes is None else (self._caps.minutes - self.minutes) * 60

    def totals(self) -> SpendingTotals:
        """Over all calls."""
        return self._sum

    def totals_of_start(self) -> SpendingTotals:
        """Over the calls since this ledger was opened."""
        return _total(self._calls[self._earlier_calls :])

    def require_price(self, known: bool, model: str, hint: str) -> None:
        """As the function of that name, for the calls of this ledger. Raises UsageError."""
        require_price(self._caps, self._sum, known=known, model=model, hint=hint)

    def reached(self, expected: Usage | None = None) -> CapReached | None:
        """The first cap that is reached, or that `expected` would pass; None when there is room."""
        committed = self._sum
        for usage in [*self._in_flight, *self._held.values(), *([expected] if expected else [])]:
            committed = committed.plus(usage)
        return self._passed(committed)

    def _passed(self, committed: SpendingTotals) -> CapReached | None:
        """The first cap that what is spent reaches, or what is committed passes."""
        amounts = {Cap.DOLLARS: committed.dollars, Cap.TOKENS: committed.tokens, Cap.MINUTES: self.minutes}
        spent = {Cap.DOLLARS: self._sum.dollars, Cap.TOKENS: self._sum.tokens, Cap.MINUTES: self.minutes}
        limits = {Cap.DOLLARS: self._caps.dollars, Cap.TOKENS: self._caps.tokens, Cap.MINUTES: self._caps.minutes}
        for cap, limit in limits.items():
            amount, sure = amounts[cap], spent[cap]
            if limit is not None and amount is not None and (amount > limit or (sure is not None and sure >= limit)):
                return CapReached(cap, limit, amount)
        return None

    @contextmanager
    def admit(self, expected: Usage) -> Iterator[None]:
        """Hold room for one attempt that costs `expected`. Raises CapReached when there is none."""
        self.take(expected, expected)
        try:
            yield
        finally:
            self.give_back(expected)

    def take(self, expected: Usage, least: Usage) -> None:
        """Hold room for one attempt until `give_back`. Raises CapReached when there is none.

        Args:
            expected: what it will cost.
            least: what it costs whatever is replied. That is enough room for the very first call, when nothing is
                known of replies.
        """
        with self._lock:
            refused = self.reached(expected)
            if refused is not None and self._first(least):
                refused = None
            if refused is not None:
                alone = self._passed(self._sum.plus(least))
                refused.may_pass = alone is None and bool(self._in_flight)
                raise refused
            self._in_flight.append(expected)

    def _first(self, least: Usage) -> bool:
        """Whether this is a run's first call, and fits if nothing is replied."""
        nobody = self._longest is None and not self._in_flight and not self._held
        return nobody and self._passed(self._sum.plus(least)) is None

    def give_back(self, expected: Usage) -> None:
        """The attempt has ended, and what it cost is recorded."""
        with self._lock:
            self._in_flight.remove(expected)

    @property
    def longest_reply(self) -> int | None:
        """Tokens of the longest reply so far; None when there was none."""
        return self._longest

    def hold(self, question: str, expected: Usage) -> None:
        """Hold room for a question that was asked and will be answered at some time, until `release`."""
        with self._lock:
            self._held[question] = expected

    def holds(self, question: str) -> bool:
        """Whether room is held for a question."""
        return question in self._held

    def release(self, question: str) -> None:
        """The question was answered, or never will be."""
        with self._lock:
            self._held.pop(question, None)

    def record(
        self,
        request: Request,
        usage: Usage,
        *,
        model: str,
        seconds: float,
        outcome: str = "ok",
        answer: str | None = None,
        reply: Reply | None = None,
    ) -> None:
        """Write one call down before its reply is used, and before that `reply`, if it cannot be had again for nothing.

        Raises OSError.
        """
        line = CallLine(
            at=self._clock(),
            slot=request.slot,
            purpose=request.purpose,
            problem=request.tags.get("problem"),
            digest=request_digest(request),
            model=model,
            usage=usage,
            seconds=seconds,
            outcome=outcome,
            answer=answer,
        )
        if reply is not None:
            self._arrivals.put(Arrival(call=line, reply=reply))
        with self._lock:
            self._append(line)
            self._calls.append(line)
            self._sum = self._sum.plus(usage, seconds)
            if outcome == "ok":
                self._longest = max(self._longest or 0, usage.completion_tokens)
            # Without what is in flight: this very call still is.
            passed = self._passed(self._sum)
        if passed is not None:
            _log.warning("%s", passed.message)

    def knows(self, request: Request, answer: str | None = None) -> bool:
        """Whether a request was answered, with this stored answer where the model has such; earlier starts count."""
        told = (request_digest(request), "ok", answer)
        return any((call.digest, call.outcome, call.answer) == told for call in self._calls)

    def arrived(self, request: Request) -> Reply | None:
        """The reply to this request that is paid for and counted, but that its node may not have stored yet."""
        arrival = self._arrivals.find(request_digest(request))
        return arrival.reply if arrival else None

    def all_kept(self) -> None:
        """Remove stored replies: the nodes that asked have stored all of them."""
        self._arrivals.clear()

    def _append(self, line: StartLine | CallLine) -> None:
        append_line(self._path, line.model_dump_json().encode())


def stored_totals(path: Path) -> SpendingTotals:
    """Over all calls in a ledger that is not opened for more, if there is one.

    Raises UsageError when the file holds something else.
    """
    return _total(line for line in _read(path) if isinstance(line, CallLine))


def _load(path: Path) -> list[StartLine | CallLine]:
    torn = cut_torn_line(path)
    if torn:
        _log.warning("%s: cut off an unfinished last line of %d bytes", path, torn)
    return _read(path)


def _read(path: Path) -> list[StartLine | CallLine]:
    lines = []
    for line in complete_lines(path.read_bytes() if path.exists() else b""):
        try:
            lines.append(Line.validate_json(line.data))
        except ValidationError as error:
            raise UsageError(
                f"{path}, line {line.number}, is not a ledger entry: {error.errors()[0]['msg']}",
                hint="mend that line or move the file away; spending before it is then forgotten",
            ) from error
    return lines


def _total(calls: Iterable[CallLine]) -> SpendingTotals:
    total = SpendingTotals()
    for call in calls:
        total = total.plus(call.usage, call.seconds)
    return total


def _active_seconds(lines: list[StartLine | CallLine]) -> float:
    """Time from each start to its last call."""
    active, began, last = 0.0, 0.0, 0.0
    for line in lines:
        if isinstance(line, StartLine):
            active += max(0.0, last - began)
            began = line.at
        last = line.at
    return active + max(0.0, last - began)
