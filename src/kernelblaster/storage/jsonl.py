"""Append-only files of JSON lines that survive a kill at any moment.

A line is one write, so a kill leaves at most one torn line, at the end, which the next writer cuts
off. Lines are bytes without the line end; what they mean is their owner's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.storage.atomic import sync_directory


@dataclass(frozen=True)
class Line:
    """A complete line: its number, from 1, and its bytes."""

    number: int
    data: bytes


def complete_lines(content: bytes) -> Iterator[Line]:
    """Lines of a file that end in a line end; empty ones are skipped."""
    whole = content[: content.rfind(b"\n") + 1]
    for number, data in enumerate(whole.split(b"\n"), start=1):
        if data.strip():
            yield Line(number, data)


def append_line(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Append one line; the directory is made. Raises OSError.

    With `sync`, wait until it is on disk. Without it a line survives the death of the process, not a power cut.
    """
    fresh = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        _write_all(handle, data + b"\n")
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)
    if fresh and sync:
        sync_directory(path.parent)


def cut_torn_line(path: Path) -> int:
    """Remove an unfinished last line; returns its length in bytes. A missing file has none."""
    if not path.exists():
        return 0
    content = path.read_bytes()
    torn = len(content) - (content.rfind(b"\n") + 1)
    if torn:
        os.truncate(path, len(content) - torn)
    return torn


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
