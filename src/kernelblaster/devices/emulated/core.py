"""Builds the SIMT core (`libkbcudart.so`) from the C++ in `core/` with g++, once per machine and content.

The library is the interpreter and the stand-in CUDA runtime in one. It lies in the cache under a name that hashes
sources, compiler, flags and the processor's features, so `-march=native` never meets a processor it was not built
for. Nothing about candidates is compiled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Core:
    """A built core: link with `-L<library_dir> -l<library_name>`, run with `library_dir` in LD_LIBRARY_PATH."""

    library_dir: Path
    library_name: str = "kbcudart"


def ensure_core(cache_dir: Path) -> Core:
    """The built core, building it first when the cache lacks it. Safe among processes.

    Raises:
        DeviceError: no g++, no CUDA headers, or the build failed.
    """
    raise NotImplementedError(cache_dir)
