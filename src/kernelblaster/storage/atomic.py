"""Files that exist are complete: written beside their place, synced, and renamed over it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by `text` so that readers and a killed writer never leave a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sweep_partial_files(root: Path) -> list[Path]:
    """Remove what writers that were killed left below `root`, where no other writer is at work; returns the files."""
    stale = list(root.glob("**/.*.part"))
    for path in stale:
        path.unlink(missing_ok=True)
    return stale
