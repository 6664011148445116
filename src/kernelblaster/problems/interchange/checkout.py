"""A checkout of KernelBench: files by the names of the problems that they become."""

from __future__ import annotations

import re
from pathlib import Path

_MODULE = re.compile(r"(\d+)_(.+)\.py")


def checkout_modules(root: Path) -> dict[str, Path]:
    """The modules of a checkout of KernelBench, `level1/019_ReLU` -> file; none where it is none.

    They lie in `level1/19_ReLU.py`, below the checkout's root or its directory `KernelBench`.
    """
    for directory in (root, root / "KernelBench"):
        files = [(path, _MODULE.fullmatch(path.name)) for path in sorted(directory.glob("level*/*.py"))]
        found = {f"{path.parent.name}/{int(it[1]):03d}_{it[2]}": path for path, it in files if it is not None}
        if found:
            return dict(sorted(found.items()))
    return {}
