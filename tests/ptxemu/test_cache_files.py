"""The cache: where it lies, and several processes in it at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ptxemu
from ptxemu.errors import EmulatorError
from ptxemu.files import default_cache_dir, locked, write_whole

COUNT_ALONE = """
import sys
from pathlib import Path
from ptxemu.files import locked
folder = Path(sys.argv[1])
for _ in range(50):
    with locked(folder / "lock"):
        counter = folder / "counter"
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_one_process_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    environment = {**os.environ, "PYTHONPATH": str(Path(ptxemu.__file__).parents[1])}
    command = [sys.executable, "-c", COUNT_ALONE, str(tmp_path)]
    processes = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [one.wait(60) for one in processes] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "150"


def test_a_lock_is_free_again_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "lock"):
        raise KeyError
    with locked(tmp_path / "lock"):
        pass


def test_a_file_that_could_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "module"
    path.write_text("old")

    def fail(partial: Path) -> None:
        partial.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(path, fail)
    assert path.read_text() == "old"


def test_the_cache_is_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "own"))
    assert default_cache_dir() == tmp_path / "own"
    monkeypatch.delenv("PTXEMU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert default_cache_dir() == tmp_path / "shared" / "ptxemu"
    assert (tmp_path / "shared" / "ptxemu").is_dir()


def test_a_cache_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EmulatorError) as caught:
        default_cache_dir()
    assert "PTXEMU_CACHE" in caught.value.hint
