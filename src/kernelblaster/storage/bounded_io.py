"""Reading files that a person names: regular ones, of a size that such a file can have.

A device file or a pipe would be read without end, or waited for.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

MIB = 2**20
SOURCE_MIB = 16
"""Most of a source file."""


def read_bounded(path: Path, most_mib: int, *, follow: bool = True) -> bytes:
    """The content of a file. Raises OSError, also for what is no regular file or larger than `most_mib` MiB.

    Args:
        path: of the file.
        most_mib: its size at most.
        follow: read what a symbolic link points to; not where somebody else made the file, who may not read all that
            we may.
    """
    # A pipe without a writer must not block.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    status = os.fstat(handle)
    if stat.S_ISDIR(status.st_mode):
        os.close(handle)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device, pipe or socket, not a file", str(path))
        most = most_mib * MIB
        content = b"" if status.st_size > most else file.read(status.st_size + 1)
        if len(content) > status.st_size:
            # Files of the kernel state no size, and others grow. A buffer of the limit is made for these alone.
            content += file.read(most + 1 - len(content))
    if max(status.st_size, len(content)) > most_mib * MIB:
        raise OSError(errno.EFBIG, f"it is larger than the {most_mib} MiB that such a file may have", str(path))
    return content


def read_source(path: Path) -> str:
    """The text of a source file, with `\\n` line ends and without a byte-order mark.

    Raises OSError as `read_bounded`, and UnicodeDecodeError.
    """
    return io.StringIO(read_bounded(path, SOURCE_MIB).decode("utf-8-sig"), newline=None).read()
