"""Reading files that somebody else has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.storage.bounded_io import read_bounded


def test_links_are_followed_for_those_who_own_them_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "link", 1) == b"content"
    assert read_bounded(tmp_path / "file", 1, follow=False) == b"content"
    with pytest.raises(OSError, match="symbolic"):
        read_bounded(tmp_path / "link", 1, follow=False)
