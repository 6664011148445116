"""Verdicts for replies that nothing is known of: recordings hold replies, and few tell what became of them.

Kernels are judged again at the tier `correct`: whether they are right, and not how fast. So verdicts of an emulated GPU
may stand beside those of a GPU, and none is a claim of speed. Only lines that a study on a GPU has left tell speeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.storage.jsonl import append_line, cut_torn_line
from kernelblaster.training.rows import Row, read_rows
from kernelblaster.training.sources import KnownReply, KnownResult
from kernelblaster.version import __version__

VERDICTS = "verdicts.jsonl"
_SAYS_NOTHING = frozenset({Verdict.NOT_EMULATABLE, Verdict.BUILT})
_REASON_CHARACTERS = 200


class VerdictRow(Row):
    """What was found of a kernel."""

    problem: str
    candidate_sha256: str
    verdict: Verdict
    reason: str
    decision: Decision | None = None
    """Against the kernel that the prompt shows; None where it was not timed."""
    speedup: float | None = None
    """Likewise."""
    outputs_judged: bool
    """False where the device executed too little of it to say whether it is right."""
    device: str
    version: str


def judge_again(
    replies: Iterable[KnownReply],
    judge: SharedJudge,
    catalogue: Catalogue,
    path: Path,
    on_judged: Callable[[int], None] = lambda count: None,
) -> int:
    """Judge the kernels of which nothing is known and that `path` has no line of; each line is written at once.

    A kernel of another precision than the judge's is passed over, as is one at which the device fails.

    Args:
        replies: whatever is known of them.
        judge, catalogue: of the problems.
        path: JSON lines of `VerdictRow`; made if it is missing.
        on_judged: told how many were judged so far.

    Returns how many could not be judged. Raises UsageError for a damaged file, ProblemError.
    """
    cut_torn_line(path)
    known = {(row.problem, row.candidate_sha256) for row in _rows(path)}
    facts, failed, judged = judge.facts, 0, 0
    for reply in replies:
        key = (reply.problem, reply.sha256)
        if reply.outcome is not None or key in known or reply.precision != judge.precision:
            continue
        known.add(key)
        try:
            found = judge.evaluate(catalogue.find(reply.problem), reply.source, profile=False, tier=Tier.CORRECT)
        except DeviceError:
            failed += 1
            continue
        row = VerdictRow(
            problem=reply.problem,
            candidate_sha256=reply.sha256,
            verdict=found.verdict,
            reason=found.reason[:_REASON_CHARACTERS],
            outputs_judged=found.outputs_judged,
            device=facts.name,
            version=__version__,
        )
        append_line(path, row.model_dump_json().encode())
        judged += 1
        on_judged(judged)
    return failed


def with_verdicts(replies: Iterable[KnownReply], *paths: Path) -> list[KnownReply]:
    """The replies, with what files tell of those of which no more is known, the first one that does.

    Raises UsageError.
    """
    told = {
        (row.problem, row.candidate_sha256): row
        for path in reversed(paths)
        for row in _rows(path)
        if row.outputs_judged and row.verdict not in _SAYS_NOTHING
    }
    found = []
    for reply in replies:
        row = told.get((reply.problem, reply.sha256))
        if reply.outcome is not None and (row is None or row.speedup is None or reply.outcome.speedup is not None):
            row = None  # what is known already says as much
        outcome = None if row is None else KnownResult(row.verdict, row.decision, row.speedup)
        found.append(reply if row is None or outcome is None else reply.with_outcome(outcome, row.device))
    return found


def _rows(path: Path) -> list[VerdictRow]:
    return read_rows(path, VerdictRow) if path.exists() else []
