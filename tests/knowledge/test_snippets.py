"""The programs that show techniques: each has what its techniques are known by, and passes its own check."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from kernelblaster.cuda_source.features import source_features
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

SNIPPETS = seed_path().parent / "snippets"
PROGRAMS = sorted(SNIPPETS.glob("*.cu"))
MOST_SECONDS = 240


def test_every_snippet_is_named_and_shows_the_signs_of_its_techniques() -> None:
    techniques = KnowledgeStore(seed_path(), owned=False).load().techniques
    named = {entry.snippet for entry in techniques.values() if entry.snippet}
    assert named == {path.name for path in PROGRAMS}
    for name, entry in techniques.items():
        if entry.snippet:
            assert set(entry.signs) <= source_features(_with_headers(SNIPPETS / entry.snippet)), name


def _with_headers(program: Path) -> str:
    """A program and what it includes of this folder."""
    text = program.read_text(encoding="utf-8")
    headers = re.findall(r'^#include "(\w+\.cuh)"', text, re.MULTILINE)
    return "\n".join([text, *((SNIPPETS / header).read_text(encoding="utf-8") for header in headers)])


def _one_a_day() -> list[Any]:
    """Every program as a parameter; all but that of the day wait for --all."""
    today = date.today().toordinal() % len(PROGRAMS)
    return [
        pytest.param(program, id=program.stem, marks=[] if place == today else [pytest.mark.slow])
        for place, program in enumerate(PROGRAMS)
    ]


@pytest.mark.parametrize("program", _one_a_day())
def test_a_snippet_compiles_and_passes_its_check_on_the_emulated_gpu(program: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ptxemu", str(program)],
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "ok"
