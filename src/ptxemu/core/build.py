"""Builds the SIMT core (`libptxcudart.so`) from the C++ in `src/` with g++, once per machine and content.

The library is the interpreter and the stand-in CUDA runtime in one. It lies in the cache under a name that hashes
sources, compiler, flags and the processor's features, so `-march=native` never meets a processor it was not built
for. No program is compiled here.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ptxemu.errors import CoreFailure
from ptxemu.files import locked
from ptxemu.toolkit import CudaToolkit, required_tool

SOURCE_DIR = Path(__file__).with_name("src")
_FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    # A contracted multiply-add would round once where PTX rounds twice.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-pthread",
    "-w",
)
# A C++ library of its own: what a program does to the global one, a locale say, changes no report.
_LINK_FLAGS = ("-static-libstdc++", "-Wl,--exclude-libs,ALL")
_EXTRA_FLAGS = {"directed.cpp": ("-frounding-math",)}
_PRECOMPILED = "precompiled.hpp"
_BUILD_TIMEOUT_S = 900


@dataclass(frozen=True)
class Core:
    """A built core: link with `-L<library_dir> -l<library_name>`, run with `library_dir` in LD_LIBRARY_PATH."""

    library_dir: Path
    library_name: str = "ptxcudart"

    @property
    def library(self) -> Path:
        """The library's file; missing until it is built."""
        return self.library_dir / f"lib{self.library_name}.so"


def locate_core(cache_dir: Path) -> Core:
    """Where the built core lies, or will lie once `ensure_core` is done.

    Raises:
        ToolkitMissing: no g++.
    """
    return Core(cache_dir / "emulated-core" / _digest(_compiler()))


def ensure_core(cache_dir: Path) -> Core:
    """The built core, building it first when the cache lacks it. Safe among processes.

    Raises:
        ToolkitMissing: no g++ or no CUDA headers.
        CoreFailure: the build failed.
    """
    core = locate_core(cache_dir)
    library = core.library
    if library.exists():
        return core
    core.library_dir.mkdir(parents=True, exist_ok=True)
    with locked(core.library_dir / "build.lock"):
        if not library.exists():
            _build(_compiler(), library)
    return core


def _compiler() -> str:
    return str(required_tool("g++", "g++"))


def _digest(compiler: str) -> str:
    """Everything that decides whether a built library fits: content, flags, compiler, processor."""
    content = hashlib.sha256()
    for path in sorted(SOURCE_DIR.iterdir()):
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    content.update(
        repr((_FLAGS, _EXTRA_FLAGS, _LINK_FLAGS, version, platform.machine(), _processor_features())).encode()
    )
    return content.hexdigest()[:16]


def _processor_features() -> str:
    """The processor's instruction sets as Linux lists them; empty where there is no such list."""
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return ""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", information.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


def _build(compiler: str, library: Path) -> None:
    include = [f"-I{directory}" for directory in CudaToolkit.find().include_dirs]
    with TemporaryDirectory(dir=library.parent) as scratch:

        def compile_one(source: Path) -> Path:
            target = Path(scratch) / f"{source.stem}.o"
            # g++ takes the precompiled header for the flags that it was made with alone.
            extra = _EXTRA_FLAGS.get(source.name, precompiled)
            _run([compiler, *_FLAGS, *include, *extra, "-c", str(source), "-o", str(target)])
            return target

        header = Path(scratch) / f"{_PRECOMPILED}.gch"
        _run([compiler, *_FLAGS, *include, "-x", "c++-header", str(SOURCE_DIR / _PRECOMPILED), "-o", str(header)])
        precompiled = (f"-I{scratch}", f"-I{SOURCE_DIR}", "-include", _PRECOMPILED)
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            objects = list(pool.map(compile_one, sorted(SOURCE_DIR.glob("*.cpp"))))
        built = Path(scratch) / library.name
        _run(
            [
                compiler,
                "-shared",
                "-pthread",
                *_LINK_FLAGS,
                f"-Wl,-soname,{library.name}",
                *map(str, objects),
                "-o",
                str(built),
            ]
        )
        built.replace(library)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        first_error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-500:])
        raise CoreFailure(
            f"the emulator's core does not build: {first_error}",
            hint="use g++ 11 or newer; `g++ --version` tells",
        )
