"""What a harness process has written does not change any more, whoever kept a way to it."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.harness import output_files
from kernelblaster.devices.harness.output_files import make_ours
from kernelblaster.errors import DeviceError


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "3.bin"
    path.write_bytes(b"right" * 1000)
    return path


def kept_descriptor(path: Path) -> Callable[[bytes], object]:
    file = os.open(path, os.O_RDWR)
    return lambda text: os.pwrite(file, text, 0)


def kept_mapping(path: Path) -> Callable[[bytes], object]:
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)

    def write(text: bytes) -> None:
        mapping[: len(text)] = text

    return write


def test_a_file_that_nobody_else_writes_stays_where_it_is(output: Path) -> None:
    before = output.stat().st_ino
    with output.open("rb"):
        make_ours(output)
    assert output.stat().st_ino == before


@pytest.mark.parametrize("keep", [kept_descriptor, kept_mapping])
def test_what_is_written_later_is_not_seen(output: Path, keep: Callable[[Path], Callable[[bytes], object]]) -> None:
    write = keep(output)
    make_ours(output)
    write(b"wrong")
    assert output.read_bytes() == b"right" * 1000
    assert list(output.parent.iterdir()) == [output]


def test_without_leases_there_is_a_copy(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "no leases here")

    before = output.stat().st_ino
    monkeypatch.setattr(output_files.fcntl, "fcntl", refuse)
    make_ours(output)
    assert output.stat().st_ino != before
    assert output.read_bytes() == b"right" * 1000


def test_no_room_for_a_copy_is_the_machines_fault(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    write = kept_mapping(output)
    monkeypatch.setattr(output_files.shutil, "copyfile", full)
    with pytest.raises(DeviceError):
        make_ours(output)
    write(b"right")
