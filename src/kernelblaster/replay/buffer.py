"""The replay buffer: every judged transition, in one table of a SQLite file.

Append-only and idempotent by (run, slot): what a resumed run judges again is not stored twice, the first outcome
stays. A row holds the transition as JSON and, beside it, the few columns that queries filter by.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelblaster.errors import KnowledgeError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.replay.transition import Transition
from kernelblaster.storage.sqlite import Database

TRANSITIONS_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS transitions (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL,
        slot TEXT NOT NULL,
        problem TEXT NOT NULL,
        state TEXT NOT NULL,
        technique TEXT NOT NULL,
        arch TEXT NOT NULL,
        device_kind TEXT NOT NULL,
        round INTEGER NOT NULL,
        rollout INTEGER NOT NULL,
        verdict TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (run, slot)
    )
    """,
    "CREATE INDEX IF NOT EXISTS transitions_by_problem ON transitions (problem, round, rollout)",
    "CREATE INDEX IF NOT EXISTS transitions_by_cell ON transitions (state, technique, arch)",
)
"""A file of the first release holds the table already, and has version 0 all the same."""

_COLUMNS = (
    "run",
    "slot",
    "problem",
    "state",
    "technique",
    "arch",
    "device_kind",
    "round",
    "rollout",
    "verdict",
)


@dataclass(frozen=True)
class Query:
    """Which transitions are wanted; None does not filter."""

    run: str | None = None
    problem: str | None = None
    state: str | None = None
    technique: str | None = None
    arch: str | None = None
    device_kind: str | None = None
    round: int | None = None
    rollout: int | None = None
    verdict: Verdict | None = None

    def where(self) -> tuple[str, list[object]]:
        """SQL condition and its parameters."""
        wanted = {name: value for name, value in asdict(self).items() if value is not None}
        condition = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        return condition, list(wanted.values())


class ReplayBuffer:
    """Transitions of a database that has `TRANSITIONS_SCHEMA` among its migrations.

    Raises:
        KnowledgeError: the file is no database, or cannot be opened.
        MachineError: the disk is full, or fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def of_first_release(cls, path: Path) -> ReplayBuffer:
        """A `replay.sqlite` of the first release, which holds transitions alone."""
        return cls(Database(path, (TRANSITIONS_SCHEMA,), fails_as=KnowledgeError))

    def append(self, transition: Transition) -> bool:
        """Store one transition durably; False when its (run, slot) is already there."""
        return self.extend([transition]) == 1

    def extend(self, transitions: Iterable[Transition]) -> int:
        """Store several in one transaction; returns how many were new."""
        with self._database.transaction() as connection:
            return insert(connection, transitions)

    def query(self, query: Query | None = None, *, newest: int | None = None) -> list[Transition]:
        """Matching transitions in the order they were stored; with `newest`, only the last so many."""
        condition, parameters = (query or Query()).where()
        statement = f"SELECT body FROM transitions WHERE {condition} ORDER BY id DESC LIMIT ?"
        with self._database.reading() as connection:
            rows = connection.execute(statement, [*parameters, -1 if newest is None else newest]).fetchall()
        return [Transition.model_validate_json(body) for (body,) in reversed(rows)]

    def count(self, query: Query | None = None) -> int:
        """Number of matching transitions."""
        condition, parameters = (query or Query()).where()
        with self._database.reading() as connection:
            statement = f"SELECT COUNT(*) FROM transitions WHERE {condition}"
            found: int = connection.execute(statement, parameters).fetchone()[0]
            return found


def insert(connection: sqlite3.Connection, transitions: Iterable[Transition]) -> int:
    """Store transitions inside a transaction of the database; returns how many were new."""
    rows = [_row(transition) for transition in transitions]
    marks = ", ".join("?" * (len(_COLUMNS) + 1))
    before = connection.total_changes
    connection.executemany(f"INSERT OR IGNORE INTO transitions ({', '.join(_COLUMNS)}, body) VALUES ({marks})", rows)
    return connection.total_changes - before


def _row(transition: Transition) -> tuple[object, ...]:
    values = transition.model_dump(mode="json", include=set(_COLUMNS))
    return (*(values[name] for name in _COLUMNS), transition.model_dump_json())
