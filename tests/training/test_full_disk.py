"""A disk that is full while weights are written is told as such, so that the command line knows what to advise."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

from safetensors import SafetensorError

from kernelblaster.training.checkpoints import telling_a_full_disk

TORCH = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 262464 vs 262352")


@pytest.mark.parametrize("error", [TORCH, SafetensorError("I/O error")])
def test_what_libraries_say_of_a_full_disk_is_an_error_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0))
    with pytest.raises(OSError, match="No space left") as told, telling_a_full_disk(tmp_path):
        raise error
    assert told.value.errno == errno.ENOSPC
    assert told.value.__cause__ is error


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="shapes"), telling_a_full_disk(tmp_path):
        raise RuntimeError("shapes do not match")
