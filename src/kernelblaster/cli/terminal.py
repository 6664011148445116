"""Consoles: where text goes, how wide it is, and whether it has colours. NO_COLOR and COLUMNS are respected."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from rich.console import Console

_DOCUMENT: TypeAdapter[Any] = TypeAdapter(Any)
PLAIN_WIDTH = 120
"""Columns of a table that goes to a file or a pipe."""


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or error; colours and live views only where that is a terminal."""
    made = Console(stderr=stderr, highlight=False)
    if made.is_terminal or "COLUMNS" in os.environ:
        return made
    return Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)


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
