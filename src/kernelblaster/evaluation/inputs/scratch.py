"""One directory per process for bulk tensors, in memory where the system has room for it there.

Removed on close and at exit. What a killed process left behind is swept by the next one that starts.
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


def free_host_memory() -> int:
    """Bytes that processes may still take."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024


def _best_parent() -> Path:
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)
    if usable and shutil.disk_usage(SHARED_MEMORY).free >= LEAST_FREE:
        return SHARED_MEMORY
    return Path(tempfile.gettempdir())


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
