"""Text from outside is bytes until it is cleaned: what untrusted commands write, and names that they choose."""

from __future__ import annotations

_LINE = {byte: chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in range(256)}
_LINES = {**_LINE, 10: "\n", 9: "\t", 13: ""}
_ONE_LINE = {**_LINE, 10: " ", 9: " ", 13: " "}


def printable_lines(data: bytes) -> str:
    """Lines in printable ASCII: line feeds and tabs are kept, carriage returns dropped, other bytes escaped."""
    return "".join(map(_LINES.__getitem__, data))


def printable(data: bytes) -> str:
    """One line in printable ASCII: line breaks and tabs become blanks, other bytes are escaped."""
    return "".join(map(_ONE_LINE.__getitem__, data))
