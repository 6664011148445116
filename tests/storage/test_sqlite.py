"""SQLite files: migrations, transactions, several writers, and files that are something else."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import threading

import pytest

from kernelblaster.errors import KnowledgeError, MachineError
from kernelblaster.storage.sqlite import Database

FIRST = ("CREATE TABLE numbers (value INTEGER NOT NULL)",)
SECOND = ("ALTER TABLE numbers ADD COLUMN name TEXT", "UPDATE numbers SET name = 'old'")
PROCESSES = multiprocessing.get_context("fork")


def database(tmp_path, *migrations, **options):
    return Database(tmp_path / "some.sqlite", migrations or (FIRST,), fails_as=KnowledgeError, **options)


def values(opened):
    with opened.reading() as connection:
        return sorted(value for (value,) in connection.execute("SELECT value FROM numbers"))


def add(opened, value):
    with opened.transaction() as connection:
        connection.execute("INSERT INTO numbers (value) VALUES (?)", (value,))


def test_a_file_is_migrated_once_and_keeps_its_rows(tmp_path):
    old = database(tmp_path)
    add(old, 1)
    old.close()
    for _ in range(2):
        new = database(tmp_path, FIRST, SECOND)
        with new.reading() as connection:
            assert connection.execute("SELECT * FROM numbers").fetchall() == [(1, "old")]
        new.close()


def test_a_migration_that_fails_changes_nothing(tmp_path):
    add(database(tmp_path), 1)
    with pytest.raises(KnowledgeError):
        values(database(tmp_path, FIRST, (*SECOND, "no SQL")))
    assert values(database(tmp_path)) == [1]


def test_a_newer_file_is_refused(tmp_path):
    values(database(tmp_path, FIRST, SECOND))
    with pytest.raises(KnowledgeError, match="newer"):
        values(database(tmp_path))


def test_an_error_undoes_the_transaction(tmp_path):
    opened = database(tmp_path)
    with pytest.raises(KnowledgeError, match="NOT NULL"):
        _add_and_fail(opened)
    assert values(opened) == []


def _add_and_fail(opened):
    with opened.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
        connection.execute("INSERT INTO numbers VALUES (NULL)")


def test_a_full_disk_is_the_machines_fault_and_loses_nothing(tmp_path):
    opened = database(tmp_path)
    add(opened, 1)
    with opened.reading() as connection:
        connection.execute("PRAGMA max_page_count = 3")
    with pytest.raises(MachineError, match="full"), opened.transaction() as connection:
        connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(10_000)])
    assert values(opened) == [1]


def test_a_writer_that_waits_too_long_says_so(tmp_path):
    values(database(tmp_path))
    with database(tmp_path).transaction(), pytest.raises(KnowledgeError, match="locked"):
        add(database(tmp_path, busy_timeout_s=0.05), 1)


def _write(opened, writer):
    for step in range(20):
        add(opened, 100 * writer + step)


def test_processes_and_threads_write_at_once(tmp_path):
    """Also on a connection that was open before the fork."""
    opened = database(tmp_path)
    values(opened)
    workers = [PROCESSES.Process(target=_write, args=(opened, number)) for number in range(2)]
    workers += [threading.Thread(target=_write, args=(opened, number)) for number in (2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert values(opened) == [100 * writer + step for writer in range(4) for step in range(20)]


def test_a_writer_killed_inside_a_transaction_leaves_nothing_of_it(tmp_path):
    opened = database(tmp_path)

    def die():
        with opened.transaction() as connection:
            connection.execute("INSERT INTO numbers VALUES (1)")
            os.kill(os.getpid(), signal.SIGKILL)

    worker = PROCESSES.Process(target=die)
    worker.start()
    worker.join(30)
    assert worker.exitcode == -signal.SIGKILL
    add(opened, 2)
    assert values(opened) == [2]


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path):
    path = tmp_path / "some.sqlite"
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 4)
    with pytest.raises(KnowledgeError, match=r"some\.sqlite") as caught:
        values(database(tmp_path))
    assert caught.value.hint
    assert path.read_bytes().startswith(b"not a database")


def test_what_was_closed_opens_again_and_leaves_one_file(tmp_path):
    opened = database(tmp_path)
    add(opened, 1)
    opened.close()
    assert [path.name for path in tmp_path.iterdir()] == ["some.sqlite"]
    assert sqlite3.connect(opened.path).execute("SELECT value FROM numbers").fetchall() == [(1,)]
    assert values(opened) == [1]
