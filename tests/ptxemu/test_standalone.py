"""The emulator needs nothing but the standard library, and its README is true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptxemu
from ptxemu.toolkit import CudaToolkit

PACKAGE = Path(ptxemu.__file__).parent
README = (PACKAGE / "README.md").read_text(encoding="utf-8")
IMPORT_ALL_ALONE = """
import importlib, pkgutil, sys

class OnlyStandardLibrary:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in {*sys.stdlib_module_names, "ptxemu", "numpy"}:
            raise ImportError(f"{name} is not of the standard library")

sys.meta_path.insert(0, OnlyStandardLibrary())
sys.path.insert(0, sys.argv[1])
import ptxemu
names = [one.name for one in pkgutil.walk_packages(ptxemu.__path__, "ptxemu.") if one.name != "ptxemu.__main__"]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def code_blocks(language: str) -> list[str]:
    """The blocks of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run_example(number: int, directory: Path) -> list[str]:
    """The lines that a Python example of the README prints."""
    (directory / "example.py").write_text(code_blocks("python")[number], encoding="utf-8")
    command = [sys.executable, "example.py"]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=300, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_module_imports_with_nothing_else_installed() -> None:
    command = [sys.executable, "-I", "-c", IMPORT_ALL_ALONE, str(PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40


@pytest.mark.nvcc
def test_the_readme_does_what_it_says(tmp_path: Path, toolkit: CudaToolkit) -> None:
    (tmp_path / "saxpy.cu").write_text(code_blocks("cuda")[0], encoding="utf-8")
    lines = run_example(0, tmp_path)
    # 65,536 floats of x and of y, 8 to a sector
    assert "16384.0 sectors loaded, counted" in lines
    assert any(line.endswith("ns, modelled") for line in lines)
    assert any("saxpy.cu:5" in line for line in lines)


@pytest.mark.nvcc
def test_the_readme_launches_ptx(tmp_path: Path, toolkit: CudaToolkit) -> None:
    (tmp_path / "scale.ptx").write_text(code_blocks("ptx")[0], encoding="utf-8")
    lines = run_example(1, tmp_path)
    assert "125.0 sectors loaded, counted" in lines
    assert any(line.endswith("us, modelled") for line in lines)


@pytest.mark.nvcc
def test_commands_of_the_readme_run(tmp_path: Path, toolkit: CudaToolkit) -> None:
    (tmp_path / "saxpy.cu").write_text(code_blocks("cuda")[0], encoding="utf-8")
    for line in code_blocks("console")[0].splitlines():
        words = line.removeprefix("$ ").removeprefix("python -m ").split()
        assert words[0] == "ptxemu"
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=environment(), check=False
        )
        assert (done.returncode, done.stdout) == (0, "cudaSuccess\n"), done.stderr


def test_help_names_every_option() -> None:
    command = [sys.executable, "-m", "ptxemu", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(), check=True)
    for option in ("--arch", "--checks", "--lines", "--json", "--record", "--include", "--sample", "--timeout"):
        assert option in done.stdout


def environment() -> dict[str, str]:
    """This process's, with this checkout's package first."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
