"""Consoles: where text goes, how wide it is, and whether it has colours. NO_COLOR and COLUMNS are respected.

What is shown may have been written by a model or a candidate: none of it reaches the terminal as a command.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_DOCUMENT: TypeAdapter[Any] = TypeAdapter(Any)
PLAIN_WIDTH = 120
"""Columns of a table that goes to a file or a pipe."""
_COMMANDS = (*range(0x20), *range(0x7F, 0xA0))
"""Code points that a terminal obeys: C0, DEL, C1 (ECMA-48)."""
_TURNS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Those that change the order in which a line is shown (Unicode, annex 9)."""
_SHOWN = {point: "?" for point in (*_COMMANDS, *_TURNS) if chr(point) not in "\n\t"}


def visible(text: str) -> str:
    """Text that a terminal shows and does not obey: a question mark stands for each control character."""
    return text.translate(_SHOWN)


class SafeConsole(Console):
    """A console whose own colours and movements are the only ones, whoever wrote what it shows."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, with control characters made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or error; colours and live views only where that is a terminal."""
    made = SafeConsole(stderr=stderr, highlight=False)
    if made.is_terminal or "COLUMNS" in os.environ:
        return made
    return SafeConsole(stderr=stderr, highlight=False, width=PLAIN_WIDTH)


def width() -> int | None:
    """Columns of standard output where that is a terminal, or as COLUMNS says; None for a file or a pipe."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def print_json(document: BaseModel | Mapping[str, Any] | Sequence[Any]) -> None:
    """Print the one document of `--json`: what is not a finite number is null, as JSON has no other word for it.

    Where standard output cannot take all of Unicode, the document has escapes instead.
    """
    text = _DOCUMENT.dump_json(document).decode()
    if not text.isascii() and codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8":
        text = json.dumps(json.loads(text))
    sys.stdout.write(text + "\n")
