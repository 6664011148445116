"""Rows of a run's table: from an outcome, or from what an unfinished search has left on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.agent.events import Decided, Evaluated, Event, StartProfiled
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import JOURNAL, OUTCOME
from kernelblaster.records.summary import ProblemSummary

_OWN = "level0"
"""Where problems of one's own lie in a run."""


def read_outcome(directory: Path) -> ProblemOutcome | None:
    """How the search in `directory` ended; None when it has not. Raises UsageError when the file is damaged."""
    path = directory / OUTCOME
    if not path.exists():
        return None
    try:
        return ProblemOutcome.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(f"{path} is damaged", hint="--no-resume sets that search aside and begins anew") from error


def row_of(directory: Path, outcome: ProblemOutcome) -> ProblemSummary:
    """The row of an outcome."""
    start = outcome.start
    return ProblemSummary(
        problem=outcome.problem,
        name=_identity(directory)[1],
        status=outcome.status,
        reason=outcome.reason,
        hint=outcome.hint,
        start=start.timing if start else None,
        comparison=outcome.comparison,
        workload=start.workload if start else None,
        outputs_judged=start is None or start.outputs_judged,
        unjudged=outcome.unjudged if start else [],
        weakly_verified=start is not None and start.weakly_verified,
        recalled_speedup=_recalled(outcome),
        verdicts=outcome.verdicts,
        transitions=outcome.transitions,
        final_kernel=outcome.final_kernel,
        pytorch_us=outcome.pytorch_us,
        directory=directory,
    )


def _recalled(outcome: ProblemOutcome) -> float | None:
    """As in `ProblemSummary`. A recalled kernel that nothing beat brought all there is, as it was measured last."""
    recalled = outcome.recalled
    if recalled is None or not recalled.accepted or outcome.comparison is None:
        return None
    return outcome.comparison.speedup if outcome.final_sha256 == recalled.candidate else recalled.speedup


def row_on_disk(directory: Path) -> ProblemSummary:
    """The row of the search in `directory`, finished or not. Raises UsageError when its outcome is damaged."""
    outcome = read_outcome(directory)
    if outcome is not None:
        return row_of(directory, outcome)
    journal = directory / JOURNAL
    events = read_events(journal) if journal.exists() else []
    # An event that a start after a kill told again is there twice.
    told = list({event.identity: event for event in events}.values())
    problem, name = _identity(directory)
    return ProblemSummary(
        problem=problem,
        name=name,
        status=OutcomeStatus.INTERRUPTED,
        reason="the search has not ended" + _so_far(told),
        verdicts=dict(Counter(event.verdict for event in told if isinstance(event, Evaluated))),
        transitions=sum(isinstance(event, Decided) for event in told),
        directory=directory,
    )


def _so_far(told: Sequence[Event]) -> str:
    """What the fastest reply of a search that has not ended takes; empty where none was faster."""
    starts = [event.median_us for event in told if isinstance(event, StartProfiled) and event.median_us]
    fastest = fastest_reply_us(told)
    if not starts or fastest is None:
        return ""
    return f"; so far {starts[0] / fastest:.2f}x: {fastest:,.1f} us of {starts[0]:,.1f}, not timed again"


def fastest_reply_us(told: Iterable[Event]) -> float | None:
    """Microseconds of the fastest reply that was faster than its parent, by that comparison; None without one."""
    judged = (event for event in told if isinstance(event, Evaluated) and event.decision == Decision.FASTER)
    return min((event.median_us for event in judged if event.median_us), default=None)


def _identity(directory: Path) -> tuple[str, str]:
    """`level1/023` and `Softmax`, of `level1/023_Softmax`; of a problem of one's own its name, twice."""
    if directory.parent.name == _OWN:
        return directory.name, directory.name
    number, _, name = directory.name.partition("_")
    return f"{directory.parent.name}/{number}", name
