"""What a problem's search has left on disk, as the parts of the report need it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kernelblaster.agent.events import (
    Classified,
    Credited,
    Decided,
    Evaluated,
    Event,
    FinalistMeasured,
    Generated,
    HandedOut,
    LessonsDrawn,
    Recalled,
    RoundStarted,
    Selected,
    StepStarted,
    Swept,
)
from kernelblaster.agent.files import ProblemFiles, StoredReply
from kernelblaster.agent.outcome import ProblemOutcome
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.records.baselines import BaselineRow, find_baseline
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import JOURNAL
from kernelblaster.records.rows import read_outcome
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.report.costs import Cost, cost_of

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class ReportedAttempt:
    """One reply inside a step: what it was, and how it was judged.

    Attributes:
        generated: the reply; None in journals that lack it.
        evaluated: the verdict; None for a reply without a source, or with one that was known.
        swept: the sweep over its tunables; None where there was none.
    """

    slot: str
    generated: Generated | None
    evaluated: Evaluated | None
    swept: Swept | None = None


@dataclass(frozen=True)
class ReportedStep:
    """One step of a rollout, from its parent to its decision.

    Attributes:
        rollout: `r1/rollout-0`.
        number: 1-based, in the rollout.
        parent: SHA-256 of the kernel it began on.
        decided: how it ended; None when it has not.
        credited: the technique its outcome counts for; None in journals that lack it.
        began: Unix time in seconds; 0 in journals that lack it.
    """

    slot: str
    rollout: str
    number: int
    parent: str
    parent_gain: float
    classified: Classified | None
    selected: Selected | None
    attempts: tuple[ReportedAttempt, ...]
    decided: Decided | None
    credited: Credited | None = None
    began: float = 0.0

    @property
    def place(self) -> str:
        """`r1 · 0 · 2`: round, rollout, number."""
        return f"{self.rollout.replace('/rollout-', ' · ')} · {self.number}"

    @property
    def last(self) -> ReportedAttempt | None:
        """The attempt that the step was decided on."""
        return self.attempts[-1] if self.attempts else None

    @property
    def technique(self) -> str:
        """What was done, as far as detectors confirm it; in journals that lack that, what was asked for."""
        return self.credited.credited if self.credited else self._asked

    @property
    def technique_told(self) -> str:
        """What was done; where another technique was asked for, both."""
        return self.credited.told if self.credited else self._asked

    @property
    def _asked(self) -> str:
        return self.decided.technique if self.decided else self.selected.technique if self.selected else ""

    @property
    def cost(self) -> Cost:
        """Of its replies and their prompts."""
        return cost_of(attempt.generated for attempt in self.attempts if attempt.generated is not None)

    @property
    def candidate(self) -> str | None:
        """SHA-256 of the source that the step was decided on."""
        last = self.last
        if last is None:
            return None
        # What was judged: after a sweep that is another source than the reply's.
        return last.evaluated.candidate if last.evaluated else last.generated.candidate if last.generated else None


@dataclass(frozen=True)
class ProblemRecord:
    """Everything the report knows of one problem.

    Attributes:
        start: SHA-256 of the starting kernel; None when the search did not get so far.
        final: SHA-256 of the final kernel; None when there is none.
        steps: by rollout and number.
        rounds: number of each round -> SHA-256 of the kernel it began on.
        evaluations: SHA-256 -> an evaluation with a profile, if there is one, else any.
        finalists: kernels that were measured against the start again.
        baseline: PyTorch beside start and final kernel; None when nobody has timed it.
        lessons: drawn from measured pairs, by generation or round.
        recalled: the kernel of the knowledge base that the search began with or refused; None where there was none.
        crossovers: slots of steps whose prompt showed a second kernel of the search.
        handed: what the archive handed out, generation by generation; none where chains of steps were searched.
        islands: that replies were spread over; None where that is not known.
    """

    row: ProblemSummary
    files: ProblemFiles
    start: str | None
    final: str | None
    steps: tuple[ReportedStep, ...]
    rounds: dict[int, str]
    evaluations: dict[str, Evaluation]
    finalists: tuple[FinalistMeasured, ...]
    baseline: BaselineRow | None
    lessons: tuple[LessonsDrawn, ...] = ()
    recalled: Recalled | None = None
    crossovers: frozenset[str] = frozenset()
    handed: tuple[HandedOut, ...] = ()
    islands: int | None = None

    @property
    def anchor(self) -> str:
        """Name of its place on the page."""
        return self.row.problem.replace("/", "-")

    def source(self, sha256: str | None) -> str | None:
        """A stored source; None when it is not there."""
        path = self.files.candidate_path(sha256) if sha256 else None
        return path.read_text(encoding="utf-8", errors="replace") if path is not None and path.exists() else None

    def exchange(self, slot: str) -> StoredReply | None:
        """Question and answer of a slot; None when there is none, or another version wrote it."""
        try:
            return StoredReply.model_validate_json(self.files.reply_path(slot).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None


def read_problem(row: ProblemSummary, directory: Path, islands: int | None = None) -> ProblemRecord:
    """Read the search of a problem that lies in `directory`. Raises UsageError for a damaged outcome.

    Args:
        row: of the run's summary.
        directory: of the problem in the run.
        islands: that replies were spread over, as the run was set; None where that is not known.
    """
    journal = directory / JOURNAL
    # An event that a start after a kill told again is there twice.
    told = {event.identity: event for event in reversed(read_events(journal) if journal.exists() else [])}
    events = list(reversed(told.values()))
    outcome, recalled = read_outcome(directory), _last(events, Recalled)
    handed = tuple(event for event in events if isinstance(event, HandedOut))
    rounds = {event.round: event.incumbent for event in events if isinstance(event, RoundStarted)}
    return ProblemRecord(
        row=row,
        files=ProblemFiles(directory),
        start=_start(outcome, recalled, rounds),
        final=outcome.final_sha256 if outcome else None,
        steps=tuple(steps_of(events)),
        rounds=rounds,
        evaluations=_evaluations(directory),
        finalists=tuple(event for event in events if isinstance(event, FinalistMeasured)),
        baseline=find_baseline(directory),
        lessons=tuple(event for event in events if isinstance(event, LessonsDrawn)),
        recalled=recalled,
        crossovers=frozenset(slot for event in handed for slot in _crossed(row, event)),
        handed=handed,
        islands=islands,
    )


def allocated_slot(problem: str, handed: HandedOut, index: int) -> str:
    """Slot of the step that a generation hands to a reply."""
    return f"{problem}/r{handed.round}/rollout-{index}/step-{handed.generation}"


def _crossed(row: ProblemSummary, handed: HandedOut) -> Iterator[str]:
    return (allocated_slot(row.problem, handed, one.index) for one in handed.allocations if one.donor is not None)


def steps_of(events: Sequence[Event]) -> Iterator[ReportedStep]:
    """The steps of a search, by rollout and number."""
    by_slot: dict[str, list[Event]] = {}
    for event in events:
        by_slot.setdefault(event.slot, []).append(event)
    begun = [event for event in events if isinstance(event, StepStarted | Decided)]
    for slot in sorted({event.slot for event in begun}, key=_order):
        own = by_slot[slot]
        started = _last(own, StepStarted)
        attempts = [
            ReportedAttempt(name, _last(of_attempt, Generated), _last(of_attempt, Evaluated), _last(of_attempt, Swept))
            for name, of_attempt in by_slot.items()
            if name.startswith(f"{slot}/attempt-")
        ]
        if not attempts and _last(own, Selected) is None and _last(own, Decided) is None:
            # It ended before it chose: there was nothing left to try, or the time was over.
            continue
        rollout, _, number = slot.rpartition("/step-")
        yield ReportedStep(
            slot=slot,
            rollout="/".join(rollout.split("/")[-2:]),
            number=int(number),
            parent=started.parent if started else "",
            parent_gain=started.gain if started else 1.0,
            classified=_last(own, Classified),
            selected=_last(own, Selected),
            attempts=tuple(sorted(attempts, key=lambda attempt: _number(attempt.slot))),
            decided=_last(own, Decided),
            credited=_last(own, Credited),
            began=started.at if started else 0.0,
        )


def _last(events: Sequence[Event], kind: type[Kind]) -> Kind | None:
    return next((event for event in reversed(events) if isinstance(event, kind)), None)


def _order(slot: str) -> tuple[int, ...]:
    """Round, rollout and step of a slot."""
    return tuple(_number(part) for part in slot.split("/")[-3:])


def _number(name: str) -> int:
    digits = "".join(character for character in name.rpartition("-")[2] if character.isdigit())
    return int(digits) if digits else 0


def _start(outcome: ProblemOutcome | None, recalled: Recalled | None, rounds: dict[int, str]) -> str | None:
    if outcome is not None and outcome.start is not None:
        return outcome.start.source_sha256
    return recalled.start if recalled is not None else rounds.get(1)


def _evaluations(directory: Path) -> dict[str, Evaluation]:
    found: dict[str, Evaluation] = {}
    for path in sorted((directory / "evaluations").glob("*.json")):
        try:
            evaluation = Evaluation.model_validate_json(path.read_bytes())
        except ValidationError:
            # Of another version, and no part of any figure.
            continue
        known = found.get(evaluation.source_sha256)
        if known is None or known.profile is None:
            found[evaluation.source_sha256] = evaluation
    return found
