"""The file of the knowledge base that people exchange, safe for many writers.

A run learns into its experiment's database (`experience`) and writes this file from it. Readers take the file as it
is: it is only ever replaced whole, by rename. Writers hold a lock file beside it from reading to renaming. A process
killed at any moment leaves either the old or the new file, never a torn one; a full disk leaves the old one. A file
that cannot be read is copied aside and never written over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from kernelblaster.errors import KnowledgeError, MachineError
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.merge import merge
from kernelblaster.knowledge.render import render
from kernelblaster.knowledge.schema import FIRST_FORMAT, FORMAT, MOST_MIB, SECOND_FORMAT, KnowledgeDocument
from kernelblaster.paths import data_dir
from kernelblaster.storage.atomic import sweep_partials_of, write_atomically
from kernelblaster.storage.bounded_io import read_bounded

Update = Callable[[KnowledgeDocument], KnowledgeDocument]


def seed_path() -> Path:
    """The shipped knowledge base: curated, with what was measured, by architecture and kind of device."""
    return data_dir() / "kb" / "optimization_database.json"


class KnowledgeStore:
    """`optimization_database.json` at `path`.

    Args:
        path: the file.
        owned: whether it is kept here: then it is copied aside when it turns out to be damaged. A file that somebody
            merely names, to look at or to take over, leaves nothing beside it.
        lock_timeout_s: how long to wait for other writers.
    """

    def __init__(self, path: Path, *, owned: bool = True, lock_timeout_s: float = 120.0) -> None:
        self.path = path
        self._owned = owned
        self._lock_timeout_s = lock_timeout_s

    def load(self) -> KnowledgeBase:
        """Read the file. Raises KnowledgeError when it is missing, damaged, or of another format."""
        return KnowledgeBase(self._read())

    def create(self, start: Path | None = None) -> bool:
        """Make the file from another one (default: the shipped seed) unless it exists; True when it was made."""
        if self.path.exists():
            return False
        document = KnowledgeStore(start or seed_path(), owned=False)._read()
        with self.locked():
            if self.path.exists():
                return False
            self.write(document)
            return True

    def update(self, change: Update) -> KnowledgeDocument:
        """Read, change and write under the lock; nothing is written when `change` raises or changes nothing."""
        with self.locked():
            before = self._read()
            after = change(before)
            if after != before:
                self.write(after)
            return after

    def merge(self, paths: Iterable[Path]) -> KnowledgeDocument:
        """Take over what other files of this format know."""
        others = [KnowledgeStore(path, owned=False)._read() for path in paths]

        def merge_all(document: KnowledgeDocument) -> KnowledgeDocument:
            for other in others:
                document = merge(document, other)
            return document

        return self.update(merge_all)

    def snapshot(self, name: str) -> Path:
        """Keep the file as it is now under `snapshots/<name>.json` beside it; returns that path."""
        target = self.path.parent / "snapshots" / f"{name}.json"
        content = self.content()
        if content is None:
            raise self._missing()
        _replace(target, content)
        return target

    def render(self) -> Path:
        """Write the markdown rendering beside the file; returns its path."""
        target = self.path.with_suffix(".md")
        _replace(target, render(self._read()).encode())
        return target

    def content(self) -> bytes | None:
        """The bytes of the file; None when there is none. Raises KnowledgeError when they cannot be read."""
        try:
            return read_bounded(self.path, MOST_MIB)
        except FileNotFoundError:
            return None
        except OSError as error:
            hint = "give an optimization_database.json that may be read"
            raise KnowledgeError(f"cannot read {self.path}: {error.strerror}", hint=hint) from error

    def parse(self, content: bytes | None) -> KnowledgeDocument:
        """What `content` says. Raises KnowledgeError when there is none, or it is damaged or of another format."""
        if content is None:
            raise self._missing()
        try:
            return KnowledgeDocument.model_validate_json(_migrated(content))
        except ValidationError as error:
            raise self._unreadable(content, error) from error

    def write(self, document: KnowledgeDocument) -> bytes:
        """Replace the file and return its bytes. Held under the lock: partial files beside it have no writer."""
        content = _serialise(document)
        sweep_partials_of(self.path)
        _replace(self.path, content)
        return content

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers away.

        Raises KnowledgeError when one stays for too long, MachineError where nothing can be written.
        """
        lock = FileLock(self.path.with_name(self.path.name + ".lock"), timeout=self._lock_timeout_s)
        _make_writable(self.path, Path(lock.lock_file))
        try:
            with lock:
                yield
        except Timeout as error:
            raise KnowledgeError(
                f"{self.path} has been locked for {self._lock_timeout_s:g} s",
                hint=f"see which process holds {lock.lock_file}",
            ) from error

    def _read(self) -> KnowledgeDocument:
        return self.parse(self.content())

    def _missing(self) -> KnowledgeError:
        return KnowledgeError(
            f"no knowledge base at {self.path}", hint=f"start from the shipped one: copy {seed_path()} there"
        )

    def _unreadable(self, text: bytes, error: ValidationError) -> KnowledgeError:
        """The right complaint about a file that is not a valid document; damaged ones are copied aside."""
        found = _format_of(text)
        if found == "upstream":
            return KnowledgeError(
                f"{self.path} is the file of another release",
                hint=f"import it: kernelblaster kb import {self.path} NEW.json",
            )
        if found is not None and found != FORMAT:
            return KnowledgeError(
                f"{self.path} has format {found}; this version reads {FORMAT}", hint="use the version that wrote it"
            )
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        kept = f"a copy is kept at {self._copy_aside(text)}; " if self._owned else ""
        return KnowledgeError(
            f"{self.path} is damaged: {where}: {first['msg']}",
            hint=f"{kept}restore a file from snapshots/, or remove the damaged one to start from the shipped knowledge "
            "base",
        )

    def _copy_aside(self, text: bytes) -> Path:
        """Keep damaged bytes under a name of their own, once per content."""
        for kept in sorted(self.path.parent.glob(f"{self.path.name}.damaged-*")):
            if kept.read_bytes() == text:
                return kept
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        copy = self.path.with_name(f"{self.path.name}.damaged-{stamp}")
        _replace(copy, text)
        return copy


def _serialise(document: KnowledgeDocument) -> bytes:
    """JSON, one entry per line, without fields that hold their defaults."""
    return (document.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode()


def _replace(path: Path, content: bytes) -> None:
    """Replace a file. On failure `path` is untouched."""
    try:
        write_atomically(path, content, sync_name=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def _make_writable(path: Path, lock: Path) -> None:
    """Make the lock file of `path`. FileLock itself takes a place where none can be made for a lock that is held."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> MachineError:
    reason = error.strerror or str(error)
    return MachineError(f"cannot write {path}: {reason}", hint="check the path, free disk space and permissions")


def _migrated(content: bytes) -> bytes:
    """A file of an earlier format in this one; any other file as it is.

    Figures of the first format mean something else and are left out. With the statistics go the transitions that were
    counted and what they said of lessons: a run that goes on counts all of them again.
    """
    found = _format_of(content)
    if found not in (FIRST_FORMAT, SECOND_FORMAT):
        return content
    held = json.loads(content) | {"format": FORMAT}
    if found == FIRST_FORMAT:
        lessons = [lesson | {"counts": {}} for lesson in held.get("lessons", [])]
        held |= {"statistics": [], "runs": {}, "lessons": lessons}
    return json.dumps(held).encode()


def _format_of(text: bytes) -> str | None:
    """The format a JSON file names, `upstream` for the other release's layout, None when it says nothing."""
    try:
        content = json.loads(text)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    if "optimization_strategies" in content and "format" not in content:
        return "upstream"
    found = content.get("format")
    return found if isinstance(found, str) else None
