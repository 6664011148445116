"""One directory per store for bulk tensors, in memory where the system has room for it there.

Removed on close and at exit. What a killed process left behind is swept by the next one that starts. The directories of
one machine lie beside each other and share the space: `fair_share` says what one of them may hold.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from kernelblaster.errors import DeviceError

SHARED_MEMORY = Path("/dev/shm")
LEAST_FREE = 256 << 20
"""Bytes that must be free in shared memory for it to be used: containers often give it 64 MB."""
_PREFIX = "kernelblaster-inputs-"


def sweep(parent: Path) -> list[Path]:
    """Remove the directories of processes that no longer run. Returns what was removed."""
    stale = [path for path in parent.glob(f"{_PREFIX}*") if not _alive(path)]
    for path in stale:
        shutil.rmtree(path, ignore_errors=True)
    return stale


def create(parent: Path | None = None) -> Path:
    """Make this process' directory, below `parent` or the best place there is. Raises DeviceError."""
    chosen = parent or _best_parent()
    sweep(chosen)
    try:
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=chosen))
    except OSError as error:
        raise DeviceError(
            f"cannot create a directory for tensors in {chosen}: {error.strerror}",
            hint="make room there, or set TMPDIR to a directory that can be written",
        ) from error
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def remove(path: Path) -> None:
    """Remove a directory that `create` made."""
    shutil.rmtree(path, ignore_errors=True)


def fair_share(directory: Path, own: int, share: float) -> int:
    """Bytes of files that one store may hold beside the other stores of this machine.

    All of them together may hold a share of the space that is free or theirs. One store may take what the others have
    left of that, and always an equal part: who holds more than that gives way when it draws next.

    Args:
        directory: of the store, as `create` made it.
        own: bytes that it holds.
        share: of the space, for all stores.
    """
    others = [path for path in directory.parent.glob(f"{_PREFIX}*") if path != directory and _alive(path)]
    held = sum(_held(path) for path in others)
    pool = int(share * (shutil.disk_usage(directory).free + own + held))
    return max(pool - held, pool // (len(others) + 1))


def free_host_memory() -> int:
    """Bytes that processes may still take."""
    return _memory("MemAvailable")


def host_memory() -> int:
    """Bytes that the host has, or the container."""
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="ascii").strip() if limit.exists() else ""
    return min(_memory("MemTotal"), int(text)) if text.isdigit() else _memory("MemTotal")


def _memory(field: str) -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields[field].split()[0]) * 1024


def free_space() -> int:
    """Bytes of files that fit where directories are made, as long as the host has memory for them."""
    parent = _best_parent()
    free = shutil.disk_usage(parent).free
    return min(free, free_host_memory()) if parent == SHARED_MEMORY else free


def _best_parent() -> Path:
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    if usable and shutil.disk_usage(SHARED_MEMORY).free >= LEAST_FREE:
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _held(directory: Path) -> int:
    """Bytes that the files below a directory take; each counts once, however many links it has there."""
    blocks = {}
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                status = os.lstat(os.path.join(parent, name))
            except FileNotFoundError:
                continue  # its store drops files while we count
            blocks[status.st_ino] = 512 * status.st_blocks
    return sum(blocks.values())


def _alive(path: Path) -> bool:
    """Whether the process that a directory is named after still runs; unreadable names count as alive."""
    pid = path.name.removeprefix(_PREFIX).partition("-")[0]
    if not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
