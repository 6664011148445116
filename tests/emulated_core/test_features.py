"""Features of CUDA beyond single instructions, each checked by the program itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.errors import MachineError
from kernelblaster.paths import cache_dir
from ptxemu.core.build import ensure_core
from ptxemu.ptx.assembler import assemble

SOURCES = [Path(__file__).with_name(name) for name in ("features.cu", "runtime_features.cu")]
FEATURES = [(source, name) for source in SOURCES for name in re.findall(r'report\("(\w+)"', source.read_text())]


def run_program(source: Path, build: Path) -> str:
    """What a program prints on the emulated device; compiled once, its PTX kept on the way."""
    try:
        toolchain = Toolchain.find()
    except MachineError as error:
        pytest.skip(f"needs nvcc: {error.message}")
    core = ensure_core(cache_dir())
    program = build / "program"
    target = ["-gencode", "arch=compute_90a,code=compute_90a", "-std=c++17", "-w"]
    linking = ["-cudart", "none", f"-L{core.library_dir}", f"-l{core.library_name}"]
    keeping = ["--keep", "--keep-dir", str(build), "-o", str(program)]
    subprocess.run([str(toolchain.nvcc), *target, str(source), *linking, *keeping], check=True, timeout=300, cwd=build)
    (ptx,) = build.glob("*.ptx")
    assemble(ptx.read_text()).write(build / "module")
    environment = {"LD_LIBRARY_PATH": str(core.library_dir), "KB_EMU_MODULE": str(build / "module")}
    done = subprocess.run(
        [str(program)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> dict[Path, list[str]]:
    """What each program prints."""
    return {one: run_program(one, tmp_path_factory.mktemp(one.stem)).splitlines() for one in SOURCES}


@pytest.mark.parametrize(("source", "name"), FEATURES, ids=[name for _, name in FEATURES])
def test_feature(lines, source, name):
    assert f"ok {name}" in lines[source]


@pytest.mark.parametrize("source", SOURCES, ids=[source.stem for source in SOURCES])
def test_nothing_else_went_wrong(lines, source):
    assert len(lines[source]) == len([name for of, name in FEATURES if of == source])
