"""Features of CUDA beyond single instructions, each checked by the program itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import ptxemu

SOURCES = [Path(__file__).with_name(name) for name in ("features.cu", "runtime_features.cu")]
FEATURES = [(source, name) for source in SOURCES for name in re.findall(r'report\("(\w+)"', source.read_text())]


def run_program(source: Path, scratch: Path) -> str:
    """What a program prints on the emulated GPU, uncounted."""
    program = ptxemu.build(source)
    done = subprocess.run(
        [str(program.built.program)],
        env={**os.environ, "PTXEMU_MODULE": str(program.module)},
        cwd=scratch, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def lines(tmp_path_factory, toolkit) -> dict[Path, list[str]]:
    """What each program prints."""
    return {one: run_program(one, tmp_path_factory.mktemp(one.stem)).splitlines() for one in SOURCES}


@pytest.mark.parametrize(("source", "name"), FEATURES, ids=[name for _, name in FEATURES])
def test_feature(lines, source, name):
    assert f"ok {name}" in lines[source]


@pytest.mark.parametrize("source", SOURCES, ids=[source.stem for source in SOURCES])
def test_nothing_else_went_wrong(lines, source):
    assert len(lines[source]) == len([name for of, name in FEATURES if of == source])
