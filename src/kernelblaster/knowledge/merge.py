"""Joining two documents into one.

The learned part joins by union (statistics and counters per run, changes and proposals by id), which is commutative,
associative and idempotent: merging a file twice, or two files with a common past, counts nothing twice. Of curated
entries with the same id, the left document's is kept; a state is left with the techniques of both.
"""

from __future__ import annotations

from kernelblaster.knowledge.cores import merge_cores
from kernelblaster.knowledge.lessons import merge_lessons
from kernelblaster.knowledge.schema import ChangeEntry, KnowledgeDocument, Proposal, RunEvidence, StateEntry
from kernelblaster.knowledge.statistics import merge_rows


def merge(left: KnowledgeDocument, right: KnowledgeDocument) -> KnowledgeDocument:
    """Everything either document knows."""
    return left.model_copy(
        update={
            "states": _merge_states(left.states, right.states),
            "techniques": {**right.techniques, **left.techniques},
            "lessons": tuple(sorted(merge_lessons(left.lessons, right.lessons), key=lambda lesson: lesson.id)),
            "statistics": merge_rows(left.statistics, right.statistics),
            "changes": _merge_changes(left.changes, right.changes),
            "proposals": _merge_proposals(left.proposals, right.proposals),
            "imported_priors": tuple(
                sorted({*left.imported_priors, *right.imported_priors}, key=lambda belief: belief.model_dump_json())
            ),
            "runs": _merge_runs(left.runs, right.runs),
            "cores": merge_cores(left.cores, right.cores),
        }
    )


def _merge_states(left: dict[str, StateEntry], right: dict[str, StateEntry]) -> dict[str, StateEntry]:
    merged = {**right, **left}
    for name in left.keys() & right.keys():
        techniques = tuple(dict.fromkeys((*left[name].techniques, *right[name].techniques)))
        merged[name] = left[name].model_copy(update={"techniques": techniques})
    return merged


def _merge_changes(left: tuple[ChangeEntry, ...], right: tuple[ChangeEntry, ...]) -> tuple[ChangeEntry, ...]:
    by_id: dict[str, ChangeEntry] = {}
    for entry in sorted((*left, *right), key=lambda entry: (entry.applied_at, entry.id)):
        by_id.setdefault(entry.id, entry)
    return tuple(by_id.values())


def _merge_proposals(left: dict[str, Proposal], right: dict[str, Proposal]) -> dict[str, Proposal]:
    """Union by id; the earlier proposal's text is kept, successes are united."""
    merged: dict[str, Proposal] = {}
    for name in sorted(left.keys() | right.keys()):
        versions = [side[name] for side in (left, right) if name in side]
        oldest = min(versions, key=lambda proposal: (proposal.proposed_at, proposal.technique.model_dump_json()))
        successes = {success.transition: success for version in versions for success in version.successes}
        ordered = tuple(successes[digest] for digest in sorted(successes))
        merged[name] = oldest.model_copy(update={"successes": ordered})
    return merged


def _merge_runs(left: dict[str, RunEvidence], right: dict[str, RunEvidence]) -> dict[str, RunEvidence]:
    merged: dict[str, RunEvidence] = {}
    for run in sorted(left.keys() | right.keys()):
        versions = [side[run] for side in (left, right) if run in side]
        sealed = any(version.sealed for version in versions)
        applied = {digest for version in versions for digest in version.applied}
        merged[run] = RunEvidence(
            applied=() if sealed else tuple(sorted(applied)),
            sealed=sealed,
            updated_at=max(version.updated_at for version in versions),
        )
    return merged
