"""The gate between harness and candidate: arguments, constructors and exceptions pass; what a call costs."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.paths import candidate_link_script, deferred_source, harness_include_dir, initialise_source

HERE = Path(__file__).parent
SUM = 0.25 + 1 + (2 - 3 + 4 + 1 + 6 + 7 + 8) + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 16 + 17 + 18.5 + 2**40
MOST_NS = 50_000
"""Far above what two system calls take, on a machine that is busy, too."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no gate is written for this processor")
def test_calls_pass_the_gate_with_all_their_arguments(toolchain: Toolchain, tmp_path: Path) -> None:
    includes = [f"-I{path}" for path in (harness_include_dir(), *toolchain.include_dirs)]
    program, library = tmp_path / "program", tmp_path / "library.so"
    compiler = [str(toolchain.host_compiler), "-std=c++17", "-O2", "-Wall", "-Werror", *includes]

    def build(*arguments: str | Path) -> None:
        subprocess.run([*compiler, *map(str, arguments)], check=True)

    build("-shared", "-fPIC", "-nostartfiles", "-T", candidate_link_script(), HERE / "gate_library.cpp",
          initialise_source(), "-o", library)  # fmt: skip
    launcher = next(word for word in symbols(toolchain, library) if "launch_gpu_implementation" in word)
    build(f'-DKB_LAUNCHER="{launcher}"', HERE / "gate_program.cpp", deferred_source(), "-static-libstdc++",
          "-Wl,--exclude-libs,ALL", "-o", program, "-ldl", "-lpthread")  # fmt: skip
    said = subprocess.run([program, library, "20000"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert float(said[0]) == SUM
    assert said[1] == "a sum of -1"
    assert 0 < float(said[2]) < MOST_NS
    print(f"{said[2]} ns per call")


def symbols(toolchain: Toolchain, library: Path) -> list[str]:
    """Words of what `nm` lists."""
    return subprocess.run(["nm", "-D", str(library)], check=True, capture_output=True, text=True).stdout.split()
