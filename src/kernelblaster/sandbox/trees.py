"""Removing what an untrusted command has left: directories nested without end, or closed to everybody."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp


def remove_tree(path: Path) -> None:
    """Remove a directory with all its contents, as far as that is allowed; follows no link.

    Directories in it are moved to one place before they are emptied, so that neither recursion nor the length of a
    path limits their depth. Whoever made them must have ended.
    """
    if not os.path.lexists(path):
        return
    with suppress(OSError):
        grave = mkdtemp(prefix=f"{path.name}-", dir=path.parent)
        os.rename(path, os.path.join(grave, "0"))
        left, moved = ["0"], 1
        while left:
            directory = os.path.join(grave, left.pop())
            for name in _unlinked(directory):
                with suppress(OSError):
                    _open_to_us(os.path.join(directory, name))
                    os.rename(os.path.join(directory, name), os.path.join(grave, str(moved)))
                    left.append(str(moved))
                    moved += 1
            with suppress(OSError):
                os.rmdir(directory)
        os.rmdir(grave)


def _unlinked(directory: str) -> list[str]:
    """Names of the directories in a directory, in which nothing else is left."""
    inner = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    inner.append(entry.name)
                else:
                    os.unlink(entry.path)
    return inner


def _open_to_us(directory: str) -> None:
    os.chmod(directory, 0o700)
