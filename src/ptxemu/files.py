"""The cache folder, and files in it that several processes write at once."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ptxemu.errors import EmulatorError


def default_cache_dir() -> Path:
    """Where the core and built programs are kept: PTXEMU_CACHE, else `ptxemu` in the user's cache; safe to delete.

    Raises EmulatorError when it cannot be made.
    """
    chosen, shared = os.environ.get("PTXEMU_CACHE"), os.environ.get("XDG_CACHE_HOME")
    hint = "set PTXEMU_CACHE to a directory that can be written"
    try:
        base = Path(chosen) if chosen else (Path(shared) if shared else Path.home() / ".cache") / "ptxemu"
        base.mkdir(parents=True, exist_ok=True)
    except RuntimeError as error:
        raise EmulatorError("this user has no home directory, where caches would lie", hint=hint) from error
    except OSError as error:
        raise EmulatorError(f"the cache cannot be made: {error}", hint=hint) from error
    return base


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, which keeps other processes and threads out. It stays behind: removing it would free it."""
    with path.open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file that others see only when it is complete."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    write(partial)
    partial.replace(path)
