"""Files that exist are complete: written beside their place, synced, and renamed over it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import BinaryIO

_PARTIAL = ".part"


def write_atomically(path: Path, content: str | bytes, *, sync: bool = True, sync_name: bool = False) -> None:
    """Replace `path` by `content` so that readers and a killed writer never leave a part of it.

    Args:
        path: its directory is made.
        content: text is written as UTF-8.
        sync: wait until the content is on disk. Without it the file survives a kill, but a power cut may leave it
            empty: for files whose readers notice that and can make them again.
        sync_name: also wait until the rename is on disk, so that a power cut cannot bring the old file back.

    Raises OSError; `path` is untouched then.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}{_PARTIAL}")
    try:
        with _created(partial) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if sync_name:
        sync_directory(path.parent)


def _created(path: Path) -> BinaryIO:
    """A new file. Its directory is there but for the first file of it, so that nobody asks before."""
    try:
        return open(path, "xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "xb")


def sync_directory(directory: Path) -> None:
    """Make new names in a directory survive a power cut. Raises OSError."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep_partial_files(root: Path) -> list[Path]:
    """Remove what writers that were killed left below `root`, where no other writer is at work; returns the files."""
    return _remove(list(root.glob(f"**/.*{_PARTIAL}")))


def sweep_partials_of(path: Path) -> list[Path]:
    """Remove what killed writers of one file left beside it, while no other writer of it is at work."""
    return _remove(list(path.parent.glob(f".{path.name}.*{_PARTIAL}")))


def _remove(stale: list[Path]) -> list[Path]:
    for path in stale:
        path.unlink(missing_ok=True)
    return stale
