"""Files that a harness process has written: what they hold must not change any more.

The process is given descriptors of them for as long as it writes. Should a candidate nevertheless have kept one, or a
mapping, it could repair a result long after its call. The kernel knows: a lease for reading is granted on a file that
nobody has open for writing, mappings included. Where it is not granted, the judge goes on with a copy.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path

from kernelblaster.errors import DeviceError

_PATIENCE_S = (0.001, 0.002, 0.005, 0.01)
"""Programs that the judge starts meanwhile have its descriptors for a moment."""


def make_ours(path: Path) -> None:
    """Go on with a copy, unless nobody else can write to the file. Raises DeviceError when there is no room for it."""
    for wait in (*_PATIENCE_S, None):
        try:
            _take_lease(path)
        except BlockingIOError:
            if wait is not None:
                time.sleep(wait)
            continue
        except OSError:
            break  # its file system has no leases
        return
    copy = path.with_suffix(".copy")
    try:
        shutil.copyfile(path, copy)
        os.replace(copy, path)
    except OSError as error:
        raise DeviceError(f"cannot copy an output: {error}", hint="free disk space") from error


def _take_lease(path: Path) -> None:
    """Take a lease and give it back. Raises BlockingIOError where somebody has the file open for writing, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        os.close(descriptor)
