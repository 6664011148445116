"""A checkout of KernelBench: files by the names of the problems that they become."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_MODULE = re.compile(r"(\d+)_(.+)\.py")
_NAMED = re.compile(r"(?:(?P<level>level\d+)/)?(?:(?P<number>\d+)(?:_|$))?(?P<name>.*?)(?:\.py)?")
"""`level1/019_ReLU`, and what people write for it: `level1/19`, `19_ReLU.py`, `ReLU`."""


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


def find_modules(written: str, names: Iterable[str]) -> list[str]:
    """The names, such as `level1/019_ReLU`, that somebody may mean who writes less of one, or no zeros."""
    asked = _NAMED.fullmatch(written)
    return [name for name in names if asked is not None and _means(asked, name)]


def _means(asked: re.Match[str], name: str) -> bool:
    level, _, own = name.partition("/")
    number, _, title = own.partition("_")
    return (
        asked["level"] in (None, level)
        and (asked["number"] is None or int(asked["number"]) == int(number))
        and asked["name"] in ("", title)
        and any(asked.group("number", "name"))
    )


def same_number(directory: Path) -> list[Path]:
    """Problems beside `level1/019_ReLU` that have its level and number under another name."""
    number = int(directory.name.partition("_")[0])
    found = (path for path in directory.parent.glob("*_*") if path.name.partition("_")[0].isdigit())
    return sorted(
        path
        for path in found
        if path.name != directory.name and int(path.name.partition("_")[0]) == number and path.is_dir()
    )
