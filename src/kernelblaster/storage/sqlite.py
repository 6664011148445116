"""SQLite files that several processes and threads of one machine read and write.

A `Database` opens its file on first use, brings the schema up to date by the migrations it has not seen, and keeps
one connection per process. Write-ahead logging lets readers go on beside a writer. A commit survives the death of the
process; only a power cut can undo the latest ones, and the file stays whole then.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernelblaster.errors import KernelBlasterError, MachineError

Migration = Sequence[str]
"""SQL statements that bring a file from one version of its schema to the next."""

_PRIMARY_CODE = 0xFF
"""Of SQLite's error codes; what lies above tells kinds of them apart."""
_RETRY_S = 0.02
_INHERITED: list[sqlite3.Connection] = []
"""Connections of a parent process. SQLite forbids to use them after a fork, and closing one would touch the file."""


class Database:
    """One SQLite file.

    Args:
        path: the file; it and its directory are made on first use.
        migrations: all there have ever been, oldest first; `PRAGMA user_version` counts those a file has seen.
        fails_as: error for a file that is no database, is newer than this program, or cannot be opened.
        busy_timeout_s: how long to wait for other writers.

    Every operation raises `fails_as`, or MachineError when the disk is full or fails.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[Migration],
        *,
        fails_as: type[KernelBlasterError],
        busy_timeout_s: float = 60.0,
    ) -> None:
        self.path = path
        self._migrations = migrations
        self._fails_as = fails_as
        self._busy_timeout_s = busy_timeout_s
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self._lock, self._errors():
            yield self._open()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a write transaction: committed at the end, rolled back on any error."""
        with self._lock, self._errors():
            connection = self._open()
            with _immediate(connection):
                yield connection

    def close(self) -> None:
        """Close the connection; the next operation opens it again. The last one to close tidies the log up."""
        with self._lock, self._errors():
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        if self._connection is not None:
            _INHERITED.append(self._connection)
            self._connection = None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self.path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if _version(connection) == len(self._migrations):
            return
        with _immediate(connection):
            # Another process may have migrated the file while this one waited.
            version = _version(connection)
            if version > len(self._migrations):
                raise self._fails_as(
                    f"{self.path} was written by a newer version of KernelBlaster", hint="use that version"
                )
            for migration in self._migrations[version:]:
                for statement in migration:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(self._migrations)}")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to write-ahead logging. SQLite does not wait for others here, whatever the timeout."""
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                return

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise MachineError(
                    f"{self.path}: {error}", hint="see whether its disk has room; what is stored is kept"
                ) from error
            raise self._fails_as(
                f"{self.path}: {error}", hint="check its permissions, or move the file away to start an empty one"
            ) from error


@contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that holds the write lock from its start, so that it never has to be tried again."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself where the disk was full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _code(error: sqlite3.Error) -> int:
    # Errors that Python's module raises by itself carry no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
