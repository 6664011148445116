"""The identity of a source: its digest."""

from __future__ import annotations

import hashlib


def source_digest(source: str) -> str:
    """SHA-256 of a source, in hexadecimal."""
    # A submission may hold lone surrogates, which UTF-8 cannot encode.
    return hashlib.sha256(source.encode("utf-8", errors="replace")).hexdigest()
