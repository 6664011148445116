"""Long texts of the page, packed: each once, compressed, and unpacked by the browser when somebody opens one."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, field

MOST_PACKED = 8 * 2**20
"""Bytes that all packed texts of a page may have."""


@dataclass
class TextPack:
    """Texts of one problem by number."""

    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def packed(self) -> str:
        """All texts: a JSON list, zlib, base64."""
        content = json.dumps(list(self._numbers), ensure_ascii=False).encode("utf-8", "replace")
        return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


@dataclass
class PackRoom:
    """What is left for packed texts on a page."""

    left: int = MOST_PACKED

    def take(self, packed: str) -> str:
        """The packed texts, or nothing where there is no room for them."""
        if len(packed) > self.left:
            return ""
        self.left -= len(packed)
        return packed
