"""Programs that are started before their candidate is there, and where they find it later."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.base import Build, Candidate
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.process import Scratch

_ABANDONED_S = 86_400.0


@dataclass(frozen=True)
class StartableProgram:
    """What is started of a candidate, and how it gets the rest.

    Attributes:
        program: the harness', or the one that the candidate was linked into.
        view: what it must see to load a candidate later; nothing where it holds one.
    """

    program: Path
    view: FileView
    _candidate: Candidate
    _load_dir: Path | None

    def library(self) -> Path | None:
        """The candidate to load, once it is built; None where the program holds it. Raises BuildFailure."""
        library = self._candidate.built().library
        if self._load_dir is None or library is None:
            return None
        return self._placed(library, self._load_dir / library.name)

    def further_library(self, build: Build) -> Path:
        """Another candidate of the same harness to load. Raises DeviceError where the program holds its candidate."""
        if self._load_dir is None or build.library is None:
            raise DeviceError(
                "this device links each candidate into a program of its own", hint="switch it off: --ablate sweep"
            )
        return self._placed(build.library, self._load_dir / f"{build.digest}.so")

    @staticmethod
    def _placed(library: Path, place: Path) -> Path:
        """A copy: what a process without isolation does to it stays with that process."""
        return Path(shutil.copyfile(library, place))


@contextmanager
def startable_program(candidate: Candidate) -> Iterator[StartableProgram]:
    """What to start now. Waits for the candidate only where its harness has no program of its own.

    Raises BuildFailure.
    """
    program = candidate.harness.program
    if program is None:
        yield StartableProgram(candidate.built().program, FileView(), candidate, None)
        return
    # Beside the program: candidates must lie where files may be executed.
    _remove_abandoned(program.parent)
    with Scratch(program.parent) as load_dir:
        yield StartableProgram(program, FileView(readable=(load_dir,)), candidate, load_dir)


def _remove_abandoned(directory: Path) -> None:
    """Remove what killed processes have left here; nobody waits for a candidate for a day."""
    for load_dir in directory.glob(f"{Scratch.PREFIX}*"):
        try:
            if time.time() - load_dir.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(load_dir, ignore_errors=True)
        except FileNotFoundError:
            continue  # its owner was quicker
