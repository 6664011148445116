"""Which shared libraries a harness process sees: those it is linked against and the driver's, one by one.

Everything else that is installed, cuBLAS say, is not merely undeclared to a candidate: it is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

_FOLDERS = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib64"),
    *(f"{root}/{machine}-linux-gnu" for root in ("/lib", "/usr/lib") for machine in ("x86_64", "aarch64")),
    *("/usr/local/nvidia/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat", "/usr/lib/wsl/lib"),
)
"""Where systems, and containers that are handed a GPU, keep libraries."""
_RUNTIME = frozenset({"libc", "libm", "libmvec", "libdl", "libpthread", "librt", "libgcc_s", "libstdc++"})
_DRIVER = frozenset({"libcuda", "libcudadebugger", "libdxcore"})
_BEGINNINGS = ("ld-linux", "ld64", "libnvidia-")
"""Of the dynamic linker, and of the driver's parts, its compiler of PTX among them."""


def runtime_libraries(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The dynamic linker, the libraries of C and C++, and the driver's, under all their names."""
    own = [Path(entry) for entry in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if entry.startswith("/")]
    folders = dict.fromkeys([*map(Path, _FOLDERS), *own])
    return tuple(path for folder in folders if folder.is_dir() for path in _wanted(folder))


def _wanted(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob("*.so*")):
        name = path.name.split(".so")[0].split("-2.")[0]  # older C libraries carry their version
        if name in _RUNTIME or name in _DRIVER or name.startswith(_BEGINNINGS):
            yield path
