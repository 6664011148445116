"""Runs nvcc and g++: to their end or the end of their time, with all that they start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_S = 300.0
"""Template-heavy programs take a minute; a template bomb takes for ever."""


@dataclass(frozen=True)
class CompilerOutput:
    """How a compiler ended and what it printed."""

    ok: bool
    text: str
    how: str
    """`exited with status 1`, for a person."""

    def first_error(self, otherwise: str) -> str:
        """Its first line about an error; `<otherwise> <how it ended>` where it printed none."""
        match = re.search(r"^.*\b(?:error|fatal)\b.*$", self.text, re.MULTILINE)
        return match[0].strip()[:500] if match else f"{otherwise} {self.how}"


def run_compiler(argv: Sequence[str], scratch: Path) -> CompilerOutput:
    """Run a compiler in `scratch`, where its temporary files go; its messages are in English."""
    process = subprocess.Popen(
        argv,
        cwd=scratch,
        env={**os.environ, "LC_ALL": "C", "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return CompilerOutput(ok=False, text="", how="ran out of time")
    finally:
        if process.poll() is None:
            # nvcc's children go with it.
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return CompilerOutput(ok=process.returncode == 0, text=text, how=f"exited with status {process.returncode}")
