"""What tools and processes say of a candidate, in words of its author: its file, its kernels, and the fault itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelblaster.devices.profiles import KernelResources, short_name

_OWN_FILE = re.compile(r"(?:/[^\s/:()]+)+/(candidate\.cu)\b")
"""A candidate's source where it lies while it is judged."""
_MANGLED = re.compile(r"\b_Z\w+")
_EMULATOR = "ptxcudart: "
_FAULT = re.compile(
    rf"^{_EMULATOR}(kernel \w+: (?:out-of-bounds|misaligned|use after free:)(?: global| shared| local)? "
    r"\w+ of \d+ bytes at 0x[0-9a-f]+"
    r"(?:, \d+ bytes after the end of an allocation of \d+|, in an allocation of \d+ that was freed)?"
    r"(?: \((?:/[^\s:()]+/)?candidate\.cu:\d+\))?)$",
    re.MULTILINE,
)
"""The emulated GPU's word on a kernel that it stopped, and no other: the rest of the output is the candidate's own."""


def tidied(text: str, resources: Iterable[KernelResources]) -> str:
    """A message without the places where this product works, with kernels under the names they have in the source."""
    names = {kernel.symbol: short_name(kernel.name) for kernel in resources if kernel.symbol}
    text = _OWN_FILE.sub(r"\1", text)
    return _MANGLED.sub(lambda found: names.get(found[0], found[0]), text)


def fault_in(log: str) -> str | None:
    """What the emulated GPU stopped a kernel for, where a program's output tells; else None."""
    found = _FAULT.search(log)
    return found[1] if found else None
