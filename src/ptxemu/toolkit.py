"""Where nvcc, its headers and the host's tools are, asked of the machine.

nvcc is looked for in PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda* and the `nvidia` wheels of PyPI. The layout of its
toolkit is asked of nvcc itself (`--dryrun`), because it may be a wrapper and wheels are laid out unlike an installed
toolkit.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ptxemu.errors import CoreFailure, ToolkitMissing

_INSTALL_NVCC = "install the CUDA toolkit, or its wheels nvidia-cuda-nvcc, -crt, -runtime, nvidia-nvvm of PyPI"
_QUERY_TIMEOUT_S = 60


@dataclass(frozen=True)
class CudaToolkit:
    """The compilers that programs are built with.

    Attributes:
        nvcc: as found; it may be a wrapper.
        version: nvcc's release, `13.0.88`.
        include_dirs: headers of the CUDA runtime.
        host_compiler: g++.
        cxxfilt: c++filt, which makes mangled names readable.
    """

    nvcc: Path
    version: str
    include_dirs: tuple[Path, ...]
    host_compiler: Path
    cxxfilt: Path

    @classmethod
    def find(cls) -> CudaToolkit:
        """The first toolkit that works. Raises ToolkitMissing, about the first nvcc found where none does."""
        host_compiler, cxxfilt = required_tool("g++", "g++"), required_tool("c++filt", "binutils")
        broken: ToolkitMissing | None = None
        for nvcc in _nvccs():
            try:
                return cls(nvcc, _version(nvcc), _include_dirs(nvcc), host_compiler, cxxfilt)
            except ToolkitMissing as error:
                broken = broken or error
        raise broken or ToolkitMissing(
            "nvcc was not found in PATH, CUDA_HOME, /usr/local/cuda* or the wheels", hint=_INSTALL_NVCC
        )

    def library(self, name: str) -> Path | None:
        """The newest shared library of the toolkit, or of a wheel, of that name; None when there is none."""
        roots = dict.fromkeys([*(directory.parent for directory in self.include_dirs), *_wheels()])
        folders = [root / lib for root in roots for lib in ("lib64", "lib", "targets/x86_64-linux/lib")]
        found = [path for folder in folders for path in sorted(folder.glob(f"lib{name}.so*"), reverse=True)]
        return found[0] if found else None

    def demangle(self, names: Sequence[str]) -> list[str]:
        """Readable names, in order. Raises CoreFailure when c++filt fails."""
        if not names:
            return []
        text = "\n".join(names)
        done = subprocess.run([str(self.cxxfilt)], input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CoreFailure(f"c++filt failed: {done.stderr.strip()[-500:]}", hint="check binutils")
        return done.stdout.splitlines()


def required_tool(name: str, package: str) -> Path:
    """A program in PATH. Raises ToolkitMissing."""
    found = shutil.which(name)
    if found is None:
        raise ToolkitMissing(f"{name} was not found in PATH", hint=f"install {package}")
    return Path(found)


def _nvccs() -> Iterator[Path]:
    """Every nvcc of this machine: of PATH, of installed toolkits, of wheels; an order that users can change first."""
    path = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    installed = sorted(Path("/usr/local").glob("cuda*"), key=_newest_first)
    for directory in dict.fromkeys([*path, *(root / "bin" for root in (*homes, *installed, *_wheels()))]):
        if os.access(directory / "nvcc", os.X_OK):
            yield directory / "nvcc"


def _wheels() -> list[Path]:
    """Where the `nvidia` wheels of PyPI are unpacked."""
    packages = dict.fromkeys(Path(entry) for entry in (*site.getsitepackages(), *sys.path) if entry)
    return [root for package in packages for root in sorted(package.glob("nvidia/*"))]


def _newest_first(path: Path) -> tuple[bool, list[int]]:
    """`/usr/local/cuda`, the machine's choice, before versions; of those the highest first."""
    return path.name != "cuda", [-int(part) for part in re.findall(r"\d+", path.name)]


def _version(nvcc: Path) -> str:
    printed = _query([str(nvcc), "--version"])
    match = re.search(r"\bV(\d+\.\d+\.\d+)", printed)
    if match is None:
        raise _broken(nvcc, "--version", printed)
    return match[1]


def _include_dirs(nvcc: Path) -> tuple[Path, ...]:
    """Header directories as nvcc itself states them. Raises ToolkitMissing when the runtime's are not among them."""
    with TemporaryDirectory(prefix="ptxemu-") as scratch:
        source = Path(scratch) / "empty.cu"
        source.touch()
        printed = _query([str(nvcc), "--dryrun", str(source), "-o", str(Path(scratch) / "empty")])
    variables = dict(re.findall(r"^#\$ (\w+)=(.*)$", printed, re.MULTILINE))
    if "TOP" not in variables:
        raise _broken(nvcc, "--dryrun", printed)
    flags = " ".join(variables.get(name, "") for name in ("INCLUDES", "SYSTEM_INCLUDES"))
    words = shlex.split(flags.replace('"-isystem" ', "-I"))
    root = Path(variables["TOP"]).resolve()
    named = [Path(word[2:].strip('"')).resolve() for word in words if word.startswith("-I")]
    found = dict.fromkeys(path for path in (*named, root / "include", root / "include" / "cccl") if path.is_dir())
    if not any((path / "cuda_runtime_api.h").is_file() for path in found):
        raise ToolkitMissing(f"the toolkit at {root} has no cuda_runtime_api.h", hint=_INSTALL_NVCC)
    return tuple(found)


def _query(argv: list[str]) -> str:
    try:
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_QUERY_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolkitMissing(f"{argv[0]} does not run: {error}", hint="mend or remove it") from error
    return done.stdout


def _broken(nvcc: Path, option: str, printed: str) -> ToolkitMissing:
    shown = " ".join(printed.split())[-300:] or "nothing"
    return ToolkitMissing(f"{nvcc} is broken: asked for {option}, it printed: {shown}", hint="mend or remove it")
