"""The front door: PTX text in, executable module out."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kernelblaster.devices.emulated.ptx.errors import NotEmulatable as NotEmulatable


class Module(Protocol):
    """Assembled kernels and variables of one PTX text."""

    def write(self, path: Path) -> None:
        """Write the file that `KB_EMU_MODULE` names."""


def assemble(ptx_text: str) -> Module:
    """Assemble every kernel of the text. Raises NotEmulatable."""
    raise NotImplementedError(ptx_text)
