"""Atomic files: all or nothing, whatever happens to the writer."""

from __future__ import annotations

import errno
import os

import pytest

from kernelblaster.storage.atomic import sweep_partial_files, sweep_partials_of, write_atomically


@pytest.mark.parametrize("content", ["text: é\n", b"\x00bytes\xff", ""])
@pytest.mark.parametrize("how", [{}, {"sync": False}, {"sync_name": True}])
def test_what_is_written_is_there_and_nothing_else(tmp_path, content, how):
    path = tmp_path / "new" / "file.json"
    for _ in range(2):
        write_atomically(path, content, **how)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(path.parent.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_litter_of_one_file_is_swept(tmp_path):
    mine, other = tmp_path / ".a.json.1.part", tmp_path / ".b.json.1.part"
    for path in (mine, other, tmp_path / "a.json"):
        path.touch()
    assert sweep_partials_of(tmp_path / "a.json") == [mine]
    assert sweep_partial_files(tmp_path) == [other]
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
