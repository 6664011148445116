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
_LINK_FLAGS = ("-static-libstdc++", "-Wl,--exclude-libs,ALL", "-Wl,-z,relro,-z,now")
_EXPORTS = SOURCE_DIR / "exports.map"
_ALONE = {
    "directed": ("-frounding-math",),
    **dict.fromkeys(("atomic", "convert", "float", "half", "integer", "memory", "tensor", "wgmma"), ()),
}
"""Files of which g++ makes much machine code, each a unit of its own, and what it is told besides."""
_PER_CALL = (
    *("arena", "callers", "device", "device_contents", "format", "graph", "heap", "host_faults", "host_memory"),
    *(
        "leaks",
        "loader",
        "modules",
        "operations",
        "program",
        "progress",
        "refused_calls",
        "report",
        "runtime",
        "settings",
    ),
)
"""Files that, beside `api_*`, work for each call of the runtime. Joined in one unit, so that headers are read once; all
files that are named nowhere work for each instruction or block, and are another unit."""
_BUILD_TIMEOUT_S = 900


@dataclass(frozen=True)
class BuiltCore:
    """A built core: link with `-L<library_dir> -l<library_name>`, run with `library_dir` in LD_LIBRARY_PATH."""

    library_dir: Path
    library_name: str = "ptxcudart"

    @property
    def library(self) -> Path:
        """The library's file; missing until it is built."""
        return self.library_dir / f"lib{self.library_name}.so"


def locate_core(cache_dir: Path) -> BuiltCore:
    """Where the built core lies, or will lie once `ensure_core` is done.

    Raises:
        ToolkitMissing: no g++.
    """
    return BuiltCore(cache_dir / "emulated-core" / _digest(_compiler()))


def ensure_core(cache_dir: Path) -> BuiltCore:
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
    content.update(repr((_FLAGS, _units(), _LINK_FLAGS, version, platform.machine(), _processor_features())).encode())
    return content.hexdigest()[:16]


def _processor_features() -> str:
    """The processor's instruction sets as Linux lists them; empty where there is no such list."""
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return ""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", information.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


def _build(compiler: str, library: Path) -> None:
    include = [f"-I{directory}" for directory in (SOURCE_DIR, *CudaToolkit.find().include_dirs)]
    with TemporaryDirectory(dir=library.parent) as scratch:

        def compile_one(unit: _Unit) -> Path:
            joined, target = Path(scratch) / f"{unit.name}.cpp", Path(scratch) / f"{unit.name}.o"
            joined.write_text("".join(f'#include "{name}.cpp"\n' for name in unit.files), encoding="utf-8")
            _run([compiler, *_FLAGS, *unit.flags, *include, "-c", str(joined), "-o", str(target)])
            return target

        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            objects = list(pool.map(compile_one, _units()))
        built = Path(scratch) / library.name
        linked = [
            "-shared",
            "-pthread",
            *_LINK_FLAGS,
            f"-Wl,--version-script,{_EXPORTS}",
            f"-Wl,-soname,{library.name}",
            *map(str, objects),
        ]
        _run([compiler, *linked, "-o", str(built)])
        built.replace(library)


@dataclass(frozen=True)
class _Unit:
    """What one run of g++ compiles: files of `src/` without their suffix, and flags beside those of all units."""

    name: str
    files: tuple[str, ...]
    flags: tuple[str, ...] = ()


def _units() -> list[_Unit]:
    """Every file of `src/` in one unit; the units that take long first, so that they end together."""
    alone = [_Unit(f"{name}_alone", (name,), flags) for name, flags in _ALONE.items()]
    files = {path.stem for path in SOURCE_DIR.glob("*.cpp")} - set(_ALONE)
    per_call = {name for name in files if name.startswith("api_")} | set(_PER_CALL)
    return [
        _Unit("per_call", tuple(sorted(per_call)), ("-O2",)),
        _Unit("per_instruction", tuple(sorted(files - per_call))),
        *alone,
    ]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        first_error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-500:])
        raise CoreFailure(
            f"the emulator's core does not build: {first_error}",
            hint="use g++ 11 or newer; `g++ --version` tells",
        )
