"""From a line of PTX to the line of CUDA source it came from, by the `.file` and `.loc` directives of `-lineinfo`."""

from __future__ import annotations

import re
from pathlib import PurePath

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]+)"')
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")


def source_location(ptx: str, line: int) -> str | None:
    """`saxpy.cu:14` for the 1-based PTX line; None when the text carries no line information before it.

    Of an inlined function this is the line inside it; `.loc` keeps the innermost place first.
    """
    lines = ptx.split("\n")
    place = next((match for text in reversed(lines[:line]) if (match := _LOC.match(text))), None)
    if place is None:
        return None
    files = {match.group(1): match.group(2) for text in lines if (match := _FILE.match(text))}
    file = files.get(place.group(1))
    return f"{PurePath(file).name}:{place.group(2)}" if file else None
