"""Reading files that somebody else has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.storage.bounded_io import read_bounded, read_source


def test_links_are_followed_for_those_who_own_them_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "link", 1) == b"content"
    assert read_bounded(tmp_path / "file", 1, follow=False) == b"content"
    with pytest.raises(OSError, match="symbolic"):
        read_bounded(tmp_path / "link", 1, follow=False)


def test_a_directory_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        read_bounded(tmp_path, 1)
    assert str(tmp_path) in str(caught.value)


def test_a_source_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_bytes(b"\xef\xbb\xbfx = 1\r\n")
    assert read_source(tmp_path / "module.py") == "x = 1\n"
