"""Audits many problems, and keeps what was found in a JSONL file, so that a sweep goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest
from kernelblaster.storage.jsonl import append_line, cut_torn_line
from kernelblaster.storage.records import read_records

Auditor = Callable[[Problem, Sequence[Precision]], list[str]]
"""Faults of a problem in some precisions."""


class AuditRecord(BaseModel):
    """What the audit of one problem has found."""

    problem: str
    name: str
    precisions: tuple[Precision, ...]
    digest: str
    """Of its reference, which alone is audited."""
    faults: tuple[str, ...]
    """One line each; none for a sound problem."""


def audit_problems(
    problems: Sequence[Problem],
    precisions: Sequence[Precision],
    audit: Auditor,
    records: Path | None,
    tell: Callable[[str], object],
) -> Iterator[AuditRecord]:
    """Audit problems, one after the other; with `records`, those that it does not hold yet, and yield all.

    Raises MachineError for a damaged file, ProblemError for a problem without a reference.
    """
    known = {} if records is None else _known(records)
    for number, problem in enumerate(problems, start=1):
        problem.require_reference()
        digest = reference_digest(problem)
        meant = tuple(precision for precision in precisions if precision in problem.precisions)
        found = known.get((str(problem.id), meant, digest))
        if found is None:
            tell(f"auditing {problem.title} ({number} of {len(problems)})")
            found = AuditRecord(
                problem=str(problem.id),
                name=problem.name,
                precisions=meant,
                digest=digest,
                faults=tuple(audit(problem, meant)),
            )
            if records is not None:
                append_line(records, found.model_dump_json().encode())
        yield found


def read_audits(path: Path) -> list[AuditRecord]:
    """What a file holds. Raises MachineError for a damaged one."""
    return list(read_records(path, AuditRecord))


def _known(path: Path) -> dict[tuple[str, tuple[Precision, ...], str], AuditRecord]:
    cut_torn_line(path)
    return {(record.problem, record.precisions, record.digest): record for record in read_audits(path)}
