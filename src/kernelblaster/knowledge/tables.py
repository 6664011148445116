"""The tables of `experience.sqlite`, and how a document lies in them.

    transitions   every judged candidate (see `replay.buffer`)
    definitions   one row: states, techniques, lessons, changes, proposals, as a document without figures
    statistics    sums of one cell learned by one run, as in the document
    rollups       the same sums over all runs, added up from the whole technique down to the single cell
    lesson_counts, lesson_totals   how often a lesson helped or harmed, by run and over all runs
    siblings      compared candidates by parent, with their gains: what credit is reckoned from
    runs, counted which transitions are in the statistics
    exchanged     digest of the document file as it was read or written last

`rollups` and `lesson_totals` are derived; they let a step read what it needs by index however much is stored. Functions
take a connection inside a transaction of their caller.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import UTC, datetime
from functools import lru_cache

from pydantic import TypeAdapter

from kernelblaster.knowledge.credit import credits, family_of, gain_of
from kernelblaster.knowledge.decisions import SelectionContext
from kernelblaster.knowledge.lessons import outcome_count
from kernelblaster.knowledge.schema import (
    FIRST_FORMAT,
    FORMAT,
    SECOND_FORMAT,
    Cell,
    KnowledgeDocument,
    Lesson,
    LessonCount,
    RunEvidence,
    StatisticsRow,
    Sums,
)
from kernelblaster.knowledge.statistics import add, cell_of, sums_of, with_credit
from kernelblaster.replay.transition import Transition

_CELL = ("state", "technique", "arch", "device_kind", "op_family", "precision", "weakly_verified")
_KEY = ("run", *_CELL)
_COMPARISONS = ("compared", "sum_gain", "sum_sq_gain")
_SUMS = ("attempts", "failures", "n", "inconclusive", "sum_log", "sum_sq_log", "best", *_COMPARISONS)
_TOTALS = ("attempts", "failed", "n", "sum_log", "sum_sq_log")

SCHEMA = (
    "CREATE TABLE definitions (revision INTEGER NOT NULL, body TEXT NOT NULL)",
    """
    CREATE TABLE statistics (
        run TEXT, state TEXT, technique TEXT, arch TEXT, device_kind TEXT, op_family TEXT, precision TEXT,
        weakly_verified INTEGER, attempts INTEGER NOT NULL, failures TEXT NOT NULL, n INTEGER NOT NULL,
        inconclusive INTEGER NOT NULL, sum_log REAL NOT NULL, sum_sq_log REAL NOT NULL, best REAL,
        PRIMARY KEY (run, technique, state, arch, device_kind, op_family, precision, weakly_verified)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX statistics_by_technique ON statistics (technique)",
    """
    CREATE TABLE rollups (
        technique TEXT, device_kind TEXT, scope TEXT, weakly_verified INTEGER, attempts INTEGER NOT NULL,
        failed INTEGER NOT NULL, n INTEGER NOT NULL, sum_log REAL NOT NULL, sum_sq_log REAL NOT NULL,
        PRIMARY KEY (technique, device_kind, scope, weakly_verified)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE lesson_counts (
        lesson TEXT, run TEXT, device_kind TEXT NOT NULL, helpful INTEGER NOT NULL, harmful INTEGER NOT NULL,
        PRIMARY KEY (lesson, run)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE lesson_totals (
        device_kind TEXT, lesson TEXT, helpful INTEGER NOT NULL, harmful INTEGER NOT NULL,
        PRIMARY KEY (device_kind, lesson)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE runs (run TEXT PRIMARY KEY, sealed INTEGER NOT NULL, updated_at TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE counted (run TEXT, digest TEXT, PRIMARY KEY (run, digest)) WITHOUT ROWID",
    "CREATE TABLE exchanged (digest TEXT NOT NULL)",
)

SIBLINGS = (
    "DELETE FROM statistics",
    "DELETE FROM rollups",
    "DELETE FROM lesson_counts",
    "DELETE FROM lesson_totals",
    "DELETE FROM runs",
    "DELETE FROM counted",
    "DELETE FROM exchanged",
    f"UPDATE definitions SET body = replace(body, '{FIRST_FORMAT}', '{SECOND_FORMAT}')",
    """
    CREATE TABLE siblings (
        run TEXT, family TEXT, digest TEXT, cell TEXT NOT NULL, gain REAL NOT NULL, PRIMARY KEY (run, family, digest)
    ) WITHOUT ROWID
    """,
)
"""Second version: credit among siblings. Figures of the first, gains against the parent, are dropped, and how often
lessons helped with them: a run that goes on counts its transitions again."""

COMPARISONS = tuple(f"ALTER TABLE statistics ADD COLUMN {name} NOT NULL DEFAULT 0" for name in _COMPARISONS)
"""Third version: gains against the parent beside credit, for people. Rows of the second have none of them."""

PAIRS = (f"UPDATE definitions SET body = replace(body, '{SECOND_FORMAT}', '{FORMAT}')",)
"""Fourth version: lessons hold the measured pairs that they come from. Those of the third have none."""

_ROWS = TypeAdapter(tuple[StatisticsRow, ...])
"""Many rows at once: validated one by one they would take most of an export."""
_ADD_ROLLUP = f"""
    INSERT INTO rollups (technique, device_kind, scope, weakly_verified, {", ".join(_TOTALS)})
    VALUES (?, ?, ?, ?, {", ".join("?" * len(_TOTALS))})
    ON CONFLICT DO UPDATE SET {", ".join(f"{name} = {name} + excluded.{name}" for name in _TOTALS)}
"""
_ADD_COUNT = """
    INSERT INTO lesson_counts (lesson, run, device_kind, helpful, harmful) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET helpful = helpful + excluded.helpful, harmful = harmful + excluded.harmful
"""
_ADD_TOTAL = """
    INSERT INTO lesson_totals (lesson, device_kind, helpful, harmful) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET helpful = helpful + excluded.helpful, harmful = harmful + excluded.harmful
"""


def scopes(state: str, context: SelectionContext | Cell) -> tuple[str, str, str, str]:
    """Keys of the rollups that hold a cell, from the single cell out to the whole technique."""
    return _scopes(context.arch, state, str(context.op_family), str(context.precision))


@lru_cache(maxsize=1024)
def _scopes(*places: str) -> tuple[str, str, str, str]:
    return json.dumps(places), json.dumps(places[:2]), json.dumps(places[:1]), json.dumps(())


def claim(connection: sqlite3.Connection, transition: Transition) -> bool:
    """Note that a transition is in the statistics; False when it is already, or its run is sealed."""
    known = connection.execute("SELECT sealed FROM runs WHERE run = ?", (transition.run,)).fetchone()
    if known is not None and known[0]:
        return False
    digest = (transition.run, transition.digest)
    if not connection.execute("INSERT OR IGNORE INTO counted VALUES (?, ?)", digest).rowcount:
        return False
    connection.execute(
        "INSERT INTO runs VALUES (?, 0, ?) ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at",
        (transition.run, _moment(datetime.now(UTC))),
    )
    return True


def count(connection: sqlite3.Connection, transition: Transition) -> None:
    """Add a transition to the sums of its cell, and to the record of the lessons it was shown.

    Raises ValueError for an unknown operator family.
    """
    cell, sums = cell_of(transition), sums_of(transition)
    key = _key(transition.run, cell)
    where = " AND ".join(f"{name} = ?" for name in _KEY)
    known = connection.execute(f"SELECT {', '.join(_SUMS)} FROM statistics WHERE {where}", key).fetchone()
    _put_row(connection, key, add(Sums.model_validate(_sums(known)), sums) if known else sums)
    _roll_up(connection, cell, sums)
    _credit_siblings(connection, transition, cell)
    change = outcome_count(transition)
    if change is not None:
        for lesson in set(transition.lessons):
            _count_lesson(connection, lesson, transition.run, change)


def _credit_siblings(connection: sqlite3.Connection, transition: Transition, cell: Cell) -> None:
    """Reckon the credit of a transition, and anew that of its siblings, which it changes."""
    gain = gain_of(transition)
    if gain is None:
        return
    family = family_of(transition)
    found = connection.execute(
        "SELECT digest, cell, gain FROM siblings WHERE run = ? AND family = ?", (transition.run, family)
    ).fetchall()
    cells = {digest: Cell.model_validate_json(body) for digest, body, _ in found} | {transition.digest: cell}
    gains = {digest: known for digest, _, known in found}
    before, after = credits(gains), credits(gains | {transition.digest: gain})
    connection.execute(
        "INSERT INTO siblings VALUES (?, ?, ?, ?, ?)",
        (transition.run, family, transition.digest, cell.model_dump_json(), gain),
    )
    for digest, credit in after.items():
        _change_credit(connection, _key(transition.run, cells[digest]), cells[digest], before.get(digest), credit)


def _change_credit(
    connection: sqlite3.Connection, key: tuple[object, ...], cell: Cell, before: float | None, after: float
) -> None:
    where = " AND ".join(f"{name} = ?" for name in _KEY)
    known = connection.execute(f"SELECT {', '.join(_SUMS)} FROM statistics WHERE {where}", key).fetchone()
    _put_row(connection, key, with_credit(Sums.model_validate(_sums(known)), before, after))
    old = before or 0.0
    totals = (0, 0, int(before is None), after - old, after**2 - old**2)
    place = (cell.technique, str(cell.device_kind))
    connection.executemany(
        _ADD_ROLLUP, [(*place, scope, int(cell.weakly_verified), *totals) for scope in scopes(cell.state, cell)]
    )


def retire_digests(connection: sqlite3.Connection, active: Set[str], most: int) -> None:
    """Seal the runs that were idle longest, never an active one, until at most so many digests are kept."""
    excess = connection.execute("SELECT COUNT(*) FROM counted").fetchone()[0] - most
    idle = connection.execute("SELECT run FROM runs WHERE NOT sealed ORDER BY updated_at").fetchall()
    for (run,) in idle:
        if excess <= 0:
            return
        if run not in active:
            excess -= connection.execute("DELETE FROM counted WHERE run = ?", (run,)).rowcount
            connection.execute("UPDATE runs SET sealed = 1 WHERE run = ?", (run,))


def revision(connection: sqlite3.Connection) -> int | None:
    """Number of the latest change to the definitions; None where no document was ever taken in."""
    found = connection.execute("SELECT revision FROM definitions").fetchone()
    return found[0] if found else None


def read_definitions(connection: sqlite3.Connection) -> KnowledgeDocument:
    """States, techniques, lessons, changes and proposals, without figures."""
    (body,) = connection.execute("SELECT body FROM definitions").fetchone()
    return KnowledgeDocument.model_validate_json(body)


def write_definitions(connection: sqlite3.Connection, document: KnowledgeDocument) -> None:
    """Replace the definitions by those of a document, whose figures are left out."""
    lessons = tuple(lesson.model_copy(update={"counts": {}}) for lesson in document.lessons)
    bare = document.model_copy(update={"lessons": lessons, "statistics": (), "runs": {}})
    following = (revision(connection) or 0) + 1
    connection.execute("DELETE FROM definitions")
    connection.execute(
        "INSERT INTO definitions VALUES (?, ?)", (following, bare.model_dump_json(exclude_defaults=True))
    )


def read_document(connection: sqlite3.Connection, techniques: Sequence[str] | None = None) -> KnowledgeDocument:
    """The whole document; with `techniques`, with the statistics of these alone and without `runs`."""
    bare = read_definitions(connection)
    figures = {
        "lessons": _with_counts(connection, bare.lessons),
        "statistics": _ROWS.validate_python(list(_read_rows(connection, techniques))),
        "runs": _read_runs(connection) if techniques is None else {},
    }
    return bare.model_copy(update=figures)


def write_document(connection: sqlite3.Connection, document: KnowledgeDocument) -> None:
    """Replace everything but the transitions by a document."""
    write_definitions(connection, document)
    for table in ("statistics", "rollups", "lesson_counts", "lesson_totals", "runs", "counted"):
        connection.execute(f"DELETE FROM {table}")
    for row in document.statistics:
        _put_row(connection, _key(row.run, row.cell), row.sums)
        _roll_up(connection, row.cell, row.sums)
    for lesson in document.lessons:
        for run, change in lesson.counts.items():
            _count_lesson(connection, lesson.id, run, change)
    for run, evidence in document.runs.items():
        connection.execute("INSERT INTO runs VALUES (?, ?, ?)", (run, evidence.sealed, _moment(evidence.updated_at)))
        connection.executemany("INSERT INTO counted VALUES (?, ?)", [(run, digest) for digest in set(evidence.applied)])


def exchanged_digest(connection: sqlite3.Connection) -> str | None:
    """Digest of the document file as it was read or written last; None before the first time."""
    found = connection.execute("SELECT digest FROM exchanged").fetchone()
    return found[0] if found else None


def note_exchanged(connection: sqlite3.Connection, digest: str) -> None:
    """Remember the document file as it is now."""
    connection.execute("DELETE FROM exchanged")
    connection.execute("INSERT INTO exchanged VALUES (?)", (digest,))


def _key(run: str, cell: Cell) -> tuple[object, ...]:
    return (run, *(str(getattr(cell, name)) for name in _CELL[:-1]), int(cell.weakly_verified))


def _put_row(connection: sqlite3.Connection, key: tuple[object, ...], sums: Sums) -> None:
    failures = json.dumps(sums.failures)
    values = [failures if name == "failures" else getattr(sums, name) for name in _SUMS]
    marks = ", ".join("?" * len((*_KEY, *_SUMS)))
    connection.execute(
        f"INSERT OR REPLACE INTO statistics ({', '.join((*_KEY, *_SUMS))}) VALUES ({marks})", (*key, *values)
    )


def _sums(row: Sequence[object]) -> dict[str, object]:
    values = dict(zip(_SUMS, row, strict=True))
    return {**values, "failures": json.loads(str(values["failures"]))}


def _roll_up(connection: sqlite3.Connection, cell: Cell, sums: Sums) -> None:
    totals = (sums.attempts, sums.failed, sums.n, sums.sum_log, sums.sum_sq_log)
    place = (cell.technique, str(cell.device_kind))
    connection.executemany(
        _ADD_ROLLUP, [(*place, scope, int(cell.weakly_verified), *totals) for scope in scopes(cell.state, cell)]
    )


def _count_lesson(connection: sqlite3.Connection, lesson: str, run: str, change: LessonCount) -> None:
    counts = (str(change.device_kind), change.helpful, change.harmful)
    connection.execute(_ADD_COUNT, (lesson, run, *counts))
    connection.execute(_ADD_TOTAL, (lesson, *counts))


def _with_counts(connection: sqlite3.Connection, lessons: Iterable[Lesson]) -> tuple[Lesson, ...]:
    counts: dict[str, dict[str, LessonCount]] = defaultdict(dict)
    statement = "SELECT lesson, run, device_kind, helpful, harmful FROM lesson_counts ORDER BY lesson, run"
    for lesson, run, kind, helpful, harmful in connection.execute(statement):
        counts[lesson][run] = LessonCount(device_kind=kind, helpful=helpful, harmful=harmful)
    return tuple(lesson.model_copy(update={"counts": counts.get(lesson.id, {})}) for lesson in lessons)


def _read_rows(connection: sqlite3.Connection, techniques: Sequence[str] | None) -> Iterator[dict[str, object]]:
    where = "1" if techniques is None else f"technique IN ({', '.join('?' * len(techniques))})"
    statement = f"SELECT {', '.join((*_KEY, *_SUMS))} FROM statistics WHERE {where} ORDER BY {', '.join(_KEY)}"
    for run, *values in connection.execute(statement, tuple(techniques or ())):
        yield {"run": run, "cell": dict(zip(_CELL, values, strict=False)), "sums": _sums(values[len(_CELL) :])}


def _read_runs(connection: sqlite3.Connection) -> dict[str, RunEvidence]:
    digests: dict[str, list[str]] = defaultdict(list)
    for run, digest in connection.execute("SELECT run, digest FROM counted ORDER BY run, digest"):
        digests[run].append(digest)
    runs = connection.execute("SELECT run, sealed, updated_at FROM runs ORDER BY run").fetchall()
    return {
        run: RunEvidence(
            applied=tuple(digests.get(run, ())), sealed=bool(sealed), updated_at=datetime.fromisoformat(updated_at)
        )
        for run, sealed, updated_at in runs
    }


def _moment(when: datetime) -> str:
    """Text that sorts by time."""
    return when.astimezone(UTC).isoformat(timespec="microseconds")
