"""Audits many problems, and keeps what was found in a JSONL file, so that a sweep goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.problems.notes import read_notes
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest
from kernelblaster.storage.jsonl import append_line, cut_torn_line
from kernelblaster.storage.records import read_records

Auditor = Callable[[Problem, Sequence[Precision]], list[str]]
"""Faults of a problem in some precisions."""
CHECKS = 2
"""Version of what an audit looks for; records of others are not taken for it."""


class AuditRecord(BaseModel):
    """What the audit of one problem has found."""

    problem: str
    name: str
    precisions: tuple[Precision, ...]
    digest: str
    """Of its reference, and of what its notes excuse (`audit_digest`)."""
    workload: str | None = None
    """Size at which it was audited; None: the cheap one."""
    checks: int = 1
    """Version of what was looked for: 1 knew nothing of branches, halves and signs."""
    faults: tuple[str, ...]
    """One line each; none for a sound problem."""


def audit_problems(
    problems: Sequence[Problem],
    precisions: Sequence[Precision],
    audit: Auditor,
    records: Path | None,
    tell: Callable[[str], object],
    workload: str | None = None,
) -> Iterator[AuditRecord]:
    """Audit problems, one after the other; with `records`, those that it does not hold yet, and yield all.

    `workload` is the size that `audit` looks at, None for the cheap one.

    Raises MachineError for a damaged file, ProblemError for a problem without a reference.
    """
    known = {} if records is None else _known(records)
    for number, problem in enumerate(problems, start=1):
        problem.require_reference()
        digest = audit_digest(problem)
        meant = tuple(precision for precision in precisions if precision in problem.precisions)
        found = known.get((str(problem.id), meant, digest, workload, CHECKS))
        if found is None:
            tell(f"auditing {problem.title} ({number} of {len(problems)})")
            found = AuditRecord(
                problem=str(problem.id),
                name=problem.name,
                precisions=meant,
                digest=digest,
                workload=workload,
                checks=CHECKS,
                faults=tuple(audit(problem, meant)),
            )
            if records is not None:
                append_line(records, found.model_dump_json().encode())
        yield found


def read_audits(path: Path) -> list[AuditRecord]:
    """What a file holds. Raises MachineError for a damaged one."""
    return list(read_records(path, AuditRecord))


def audit_digest(problem: Problem) -> str:
    """Of what an audit depends on: the reference, and notes where they excuse a kernel that leaves something out."""
    reference, excused = reference_digest(problem), read_notes(problem.directory).inert
    if not excused:
        return reference
    text = json.dumps(dict(excused), sort_keys=True)
    return f"{reference}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _known(path: Path) -> dict[tuple[str, tuple[Precision, ...], str, str | None, int], AuditRecord]:
    records = read_audits(path)
    cut_torn_line(path)
    return {
        (record.problem, record.precisions, record.digest, record.workload, record.checks): record for record in records
    }
