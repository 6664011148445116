"""Consoles: where text goes, how wide it is, and whether it has colours. NO_COLOR and COLUMNS are respected."""

from __future__ import annotations

import os

from rich.console import Console

PLAIN_WIDTH = 120
"""Columns of a table that goes to a file or a pipe."""


def console(*, stderr: bool = False) -> Console:
    """A console on standard output or error; colours and live views only where that is a terminal."""
    made = Console(stderr=stderr, highlight=False)
    if made.is_terminal or "COLUMNS" in os.environ:
        return made
    return Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)
