"""A disk that fills up and a GPU that is lost: one line says so, and the next start goes on where this one ended."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pytest
from fault_runs import Bench, Run, differences
from fault_starts import Disk, Fault, Scenario

from kernelblaster.errors import ExitCode

SEARCH = Scenario(1, ("--steps=3",), ruled=False)


@pytest.fixture(scope="module")
def sound(workspace: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return workspace.undisturbed(SEARCH, tmp_path_factory.mktemp("sound") / "run")


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system of its own with 400 kB."""
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_disk_that_is_full_from_some_write_on(workspace: Bench, sound: Run, tmp_path: Path, thorough: bool) -> None:
    moments = random.Random(4 if thorough else date.today().toordinal()).sample(
        range(1, sound.disk_calls + 1), 12 if thorough else 1
    )
    assert workspace.differences(sound, tmp_path, [Fault(disk=Disk.FULL, at=moment) for moment in moments]) == {}


def test_a_small_disk_that_is_enlarged(workspace: Bench, sound: Run, tmp_path: Path) -> None:
    with workspace.open(SEARCH, tmp_path / "run") as run, small_disk(run.directory / "out"):
        assert run.start() == ExitCode.MACHINE
        assert "Traceback" not in run.errors
        assert sum(line.startswith("error: ") for line in run.errors.splitlines()) == 1
        subprocess.run(["mount", "-o", "remount,size=64m", run.directory / "out"], check=True)
        run.finish()
        run.check_nothing_repeated()
        run.check_books()
        assert not list(differences(sound.result(), run.result()))


@pytest.mark.parametrize("builds", [0, 4, 9])
def test_a_gpu_that_is_lost(workspace: Bench, sound: Run, tmp_path: Path, builds: int) -> None:
    run = workspace.disturbed(SEARCH, tmp_path / "lost", Fault(lost_after=builds))
    assert run.codes == [ExitCode.MACHINE, ExitCode.OK]
    assert "the GPU is lost" in run.last_words
    assert "reset it" in run.last_words
    assert "Traceback" not in run.last_words
    assert not list(differences(sound.result(), run.result()))
