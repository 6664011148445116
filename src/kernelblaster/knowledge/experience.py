"""What an experiment has learned: `experience.sqlite`, beside the document that people exchange.

Every transition is stored and counted in one transaction, once, by any number of processes; a step reads and writes
by index, so that it costs the same however much is stored. `optimization_database.json` is read when the experience
is opened, and whenever somebody has changed it since: what it knows is merged in. `export` writes it anew, complete.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import KnowledgeError
from kernelblaster.knowledge import tables
from kernelblaster.knowledge.amend import amend, count_success
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.changes import KnowledgeChange, Provenance, RetireTechnique
from kernelblaster.knowledge.cores import merge_cores
from kernelblaster.knowledge.decisions import SelectionContext
from kernelblaster.knowledge.evidence import Level, LevelTotals, TechniqueTotals
from kernelblaster.knowledge.merge import merge
from kernelblaster.knowledge.pairs import Learned, PairFinding, count_shown, learn
from kernelblaster.knowledge.schema import Core, KnowledgeDocument
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.replay.buffer import TRANSITIONS_SCHEMA, ReplayBuffer, insert
from kernelblaster.replay.transition import Transition
from kernelblaster.storage.sqlite import Database

EXPERIENCE = "experience.sqlite"
FIRST_RELEASE = "replay.sqlite"
"""Where the first release kept transitions; its statistics lie in the document."""
MAX_DIGESTS = 20_000
"""Digests of counted transitions that are kept. Runs that were idle longest lose theirs beyond that, and are sealed:
nothing more is accepted from them, for losing a late transition is the safe side of counting one twice."""
_MIGRATIONS = ((*TRANSITIONS_SCHEMA, *tables.SCHEMA), tables.SIBLINGS, tables.COMPARISONS, tables.PAIRS)


class Experience:
    """Transitions, statistics and lessons of one experiment. Safe for many threads and processes.

    Args:
        exchange: the document file; the database lies beside it.

    Raises:
        KnowledgeError: there is neither document nor database, or one of them is damaged or of another format.
        MachineError: the disk is full, or fails.
    """

    def __init__(
        self, exchange: KnowledgeStore, *, busy_timeout_s: float = 60.0, max_digests: int = MAX_DIGESTS
    ) -> None:
        self.exchange = exchange
        self._max_digests = max_digests
        self._database = _database(exchange.path.parent, busy_timeout_s)
        self._evidence = TableEvidence(self._database)
        self._definitions: tuple[int, KnowledgeBase] | None = None
        self._active: set[str] = set()
        self.transitions = ReplayBuffer(self._database)
        with exchange.locked():
            self._take_in(exchange.content())

    def base(self) -> KnowledgeBase:
        """The knowledge base as it is now; it looks measurements up when it is asked."""
        with self._database.reading() as connection:
            return self._base(connection)

    def document(self) -> KnowledgeDocument:
        """Everything that is known, as the document file would hold it."""
        with self._database.reading() as connection:
            return tables.read_document(connection)

    def record(self, transition: Transition) -> bool:
        """Store and count a transition; False when it had been counted before.

        Raises ValueError for an unknown operator family; nothing is stored then.
        """
        evidence = transition.as_evidence()
        with self._database.transaction() as connection:
            insert(connection, [transition])
            self._active.add(evidence.run)
            if not tables.claim(connection, evidence):
                return False
            tables.count(connection, evidence)
            definitions = self._base(connection).document
            credited = count_shown(count_success(definitions, evidence), evidence)
            if credited is not definitions:
                tables.write_definitions(connection, credited)
            return True

    def apply(self, changes: Sequence[KnowledgeChange], provenance: Provenance) -> list[str]:
        """Apply typed changes as additions; one line per change: applied, or refused and why."""
        retired = [change.technique for change in changes if isinstance(change, RetireTechnique)]
        lines = []
        with self._database.transaction() as connection:
            document = before = tables.read_document(connection, retired)
            for change in changes:
                document, line = amend(document, change, provenance, datetime.now(UTC))
                lines.append(line)
            if document is not before:
                tables.write_definitions(connection, document)
        return lines

    def learn_pair(self, transition: Transition, finding: PairFinding, provenance: Provenance) -> list[Learned]:
        """Add what was read off a telling transition (`pairs.is_telling`) to the lessons; every effect of it."""
        with self._database.transaction() as connection:
            document = tables.read_definitions(connection)
            grown, effects = learn(document, transition.as_evidence(), finding, provenance)
            if grown is not document:
                tables.write_definitions(connection, grown)
        return effects

    def remember(self, core: Core) -> None:
        """Add a verified kernel to the code memory, unless a faster one of the same place is there."""
        with self._database.transaction() as connection:
            document = tables.read_definitions(connection)
            cores = merge_cores(document.cores, [core])
            if cores != document.cores:
                tables.write_definitions(connection, document.model_copy(update={"cores": cores}))

    def merge(self, paths: Iterable[Path]) -> None:
        """Take over what document files know."""
        others = [KnowledgeStore(path, owned=False).load().document for path in paths]
        with self._database.transaction() as connection:
            document = tables.read_document(connection)
            for other in others:
                document = merge(document, other)
            tables.write_document(connection, document)

    def export(self) -> Path:
        """Write the document file, with whatever somebody has added to it meanwhile; returns its path."""
        with self.exchange.locked():
            self._take_in(self.exchange.content())
            with self._database.transaction() as connection:
                tables.retire_digests(connection, self._active, self._max_digests)
                document = tables.read_document(connection)
            content = self.exchange.write(document)
            with self._database.transaction() as connection:
                tables.note_exchanged(connection, _digest(content))
        return self.exchange.path

    def close(self) -> None:
        """Let go of the database; the next use opens it again."""
        self._database.close()

    def _base(self, connection: sqlite3.Connection) -> KnowledgeBase:
        """Definitions are parsed again only when they have changed."""
        revision = tables.revision(connection)
        if self._definitions is None or self._definitions[0] != revision:
            base = KnowledgeBase(tables.read_definitions(connection), self._evidence)
            self._definitions = (revision or 0, base)
        return self._definitions[1]

    def _take_in(self, content: bytes | None) -> None:
        """Merge what the document file says, unless it is as it was. Held under the file's lock."""
        with self._database.transaction() as connection:
            if tables.revision(connection) is None:
                tables.write_document(connection, self.exchange.parse(content))
                insert(connection, _of_first_release(self.exchange.path.parent))
            elif content is None or _digest(content) == tables.exchanged_digest(connection):
                return
            else:
                found = self.exchange.parse(content)
                tables.write_document(connection, merge(found, tables.read_document(connection)))
            if content is not None:
                tables.note_exchanged(connection, _digest(content))


class TableEvidence:
    """Evidence by index: a few rows per technique, whatever the tables hold."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_techniques(
        self, techniques: Sequence[str], state: str, context: SelectionContext
    ) -> Mapping[str, Sequence[LevelTotals]]:
        """See `Evidence`."""
        scopes = tables.scopes(state, context)
        marks = ", ".join("?" * len(techniques))
        statement = (
            "SELECT technique, weakly_verified, scope, attempts, failed, n, sum_log, sum_sq_log FROM rollups "
            f"WHERE technique IN ({marks}) AND device_kind = ? AND scope IN (?, ?, ?, ?)"
        )
        found: dict[tuple[str, bool], dict[str, TechniqueTotals]] = defaultdict(dict)
        with self._database.reading() as connection:
            for technique, weak, scope, *sums in connection.execute(
                statement, (*techniques, str(context.device_kind), *scopes)
            ):
                found[technique, bool(weak)][scope] = TechniqueTotals(*sums)
        measured: dict[str, list[LevelTotals]] = defaultdict(list)
        for (technique, weak), by_scope in found.items():
            measured[technique] += _by_level(weak, [by_scope.get(scope, TechniqueTotals()) for scope in scopes])
        return measured

    def lesson_records(self, kind: DeviceKind) -> Mapping[str, tuple[int, int]]:
        """See `Evidence`."""
        statement = "SELECT lesson, helpful, harmful FROM lesson_totals WHERE device_kind = ?"
        with self._database.reading() as connection:
            return {
                lesson: (helpful, harmful) for lesson, helpful, harmful in connection.execute(statement, (str(kind),))
            }


def has_transitions(directory: Path) -> bool:
    """Whether `directory` is that of an experiment; opening another one would make it one."""
    return any((directory / name).is_file() for name in (EXPERIENCE, FIRST_RELEASE))


def stored_transitions(directory: Path) -> ReplayBuffer:
    """The transitions of the experiment in `directory`, also of one that the first release has left."""
    if not (directory / EXPERIENCE).exists() and (directory / FIRST_RELEASE).exists():
        return ReplayBuffer.of_first_release(directory / FIRST_RELEASE)
    return ReplayBuffer(_database(directory))


def _database(directory: Path, busy_timeout_s: float = 60.0) -> Database:
    return Database(directory / EXPERIENCE, _MIGRATIONS, fails_as=KnowledgeError, busy_timeout_s=busy_timeout_s)


def _of_first_release(directory: Path) -> list[Transition]:
    path = directory / FIRST_RELEASE
    return ReplayBuffer.of_first_release(path).query() if path.exists() else []


def _by_level(weak: bool, nested: Sequence[TechniqueTotals]) -> list[LevelTotals]:
    """Totals apart by level, of totals that hold each other: single cell, state, architecture, technique."""
    inner = [TechniqueTotals(), *nested]
    return [
        LevelTotals(level, weak, outer.minus(part)) for level, part, outer in zip(Level, inner, nested, strict=False)
    ]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
