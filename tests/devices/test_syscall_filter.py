"""The filter of system calls on reports of the emulator: one instruction writes them, and nobody closes them."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.paths import harness_include_dir

HERE = Path(__file__).parent
NEVER = ("close first", "close second", "close socket", "open page", "drop page", "write other", "pinned other")


@pytest.fixture(scope="module")
def program(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("filter") / "program"
    command = [toolchain.host_compiler, "-std=c++17", "-O1", "-Wall", "-Werror", f"-I{harness_include_dir()}"]
    subprocess.run([*map(str, command), str(HERE / "filter_program.cpp"), "-o", str(built)], check=True)
    return built


def attempts(program: Path, how: str, tmp_path: Path) -> dict[str, int]:
    """What came of each attempt, and how much the two reports hold then."""
    reports = [tmp_path / "first", tmp_path / "second"]
    done = subprocess.run([program, how, *reports], check=True, capture_output=True, text=True)
    told = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()}
    return told | {path.name: path.stat().st_size for path in reports}


@pytest.mark.parametrize("how", ["pinned", "any"])
def test_reports_are_not_closed_and_other_files_not_written(program: Path, how: str, tmp_path: Path) -> None:
    told = attempts(program, how, tmp_path)
    assert {told[name] for name in NEVER} == {errno.EPERM}
    assert {told["close other"], told["pinned first"], told["pinned second"]} == {0}


def test_reports_are_written_from_one_instruction(program: Path, tmp_path: Path) -> None:
    told = attempts(program, "pinned", tmp_path)
    assert {told[name] for name in ("write first", "write second", "writev second")} == {errno.EPERM}
    assert (told["first"], told["second"]) == (1, 1)


def test_where_no_instruction_is_named_any_writes_them(program: Path, tmp_path: Path) -> None:
    told = attempts(program, "any", tmp_path)
    assert {told[name] for name in ("write first", "write second", "writev second")} == {0}
    assert (told["first"], told["second"]) == (2, 3)
