"""Checkpoints that a kill leaves whole or not at all. Needs the extra `train`."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import TrainerCallback

from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.policy import COMPLETE

CHECKPOINT = "checkpoint-"
_NO_ROOM = 1 << 20
"""Bytes: what was written of a file that did not fit is still there."""

OnMoment = Callable[[str, int], None]
"""Called with `updated`, `saving` or `saved`, and the updates made."""


def last_checkpoint(directory: Path) -> str | None:
    """The newest checkpoint that was written whole; what a kill left of others is removed."""
    whole = []
    for path in directory.glob(f"{CHECKPOINT}*"):
        if (path / COMPLETE).is_file():
            whole.append((int(path.name.removeprefix(CHECKPOINT)), path))
        else:
            shutil.rmtree(path)
    return str(max(whole)[1]) if whole else None


@contextmanager
def telling_a_full_disk(directory: Path) -> Iterator[None]:
    """Raise OSError where weights could not be written for want of room: torch and safetensors say something else."""
    try:
        yield
    except (RuntimeError, SafetensorError) as error:
        if shutil.disk_usage(directory).free >= _NO_ROOM:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory)) from error


class MarksCheckpoints(TrainerCallback):
    """Marks checkpoints that are whole, and tells of updates.

    Args:
        directory: of the trainer.
        on_moment: told before and after.
    """

    def __init__(self, directory: Path, on_moment: OnMoment = lambda name, step: None) -> None:
        self._directory = directory
        self._on_moment = on_moment

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Called by the trainer after an update."""
        self._on_moment("updated", state.global_step)
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """Called by the trainer when all files of a checkpoint are there."""
        self._on_moment("saving", state.global_step)
        write_atomically(self._directory / f"{CHECKPOINT}{state.global_step}" / COMPLETE, "")
        self._on_moment("saved", state.global_step)
        return control
