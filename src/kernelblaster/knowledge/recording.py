"""Counting transitions into a document, each exactly once.

Per run, the document remembers the digests of the transitions already counted, so that a resumed run may record
again what it recorded before. All replays of one recording count as one run. The number of digests in a file is
bounded: beyond `MAX_DIGESTS` the runs that were idle longest are sealed. A sealed run's digests are gone, so nothing
more is accepted from it: losing a late transition is the safe side of counting one twice.
"""

from __future__ import annotations

from datetime import datetime

from kernelblaster.knowledge.amend import count_success
from kernelblaster.knowledge.lessons import mark
from kernelblaster.knowledge.schema import KnowledgeDocument, RunEvidence
from kernelblaster.knowledge.statistics import add_transition
from kernelblaster.replay.transition import Transition

MAX_DIGESTS = 20_000


def record(
    document: KnowledgeDocument, transition: Transition, now: datetime, *, max_digests: int = MAX_DIGESTS
) -> tuple[KnowledgeDocument, bool]:
    """The document with the transition counted, and whether it was new.

    Raises:
        ValueError: the transition names an operator family that does not exist.
    """
    transition = transition.as_evidence()
    run = document.runs.get(transition.run, RunEvidence(updated_at=now))
    if run.sealed or transition.digest in run.applied:
        return document, False
    document = count_success(document, transition)
    updated = RunEvidence(applied=(*run.applied, transition.digest), updated_at=now)
    document = document.model_copy(
        update={
            "statistics": add_transition(document.statistics, transition),
            "lessons": mark(document.lessons, transition),
            "runs": _bounded({**document.runs, transition.run: updated}, transition.run, max_digests),
        }
    )
    return document, True


def _bounded(runs: dict[str, RunEvidence], current: str, max_digests: int) -> dict[str, RunEvidence]:
    """Seal the runs that were idle longest, never the current one, until the digests fit."""
    bounded = dict(runs)
    excess = sum(len(run.applied) for run in runs.values()) - max_digests
    for name in sorted(runs, key=lambda name: runs[name].updated_at):
        if excess <= 0:
            break
        if name != current and not runs[name].sealed:
            excess -= len(runs[name].applied)
            bounded[name] = RunEvidence(sealed=True, updated_at=runs[name].updated_at)
    return bounded
