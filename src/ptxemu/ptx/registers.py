"""Where a kernel's registers lie.

Each PTX register becomes 32 lanes at an offset of the register file: 16-bit ones 64 bytes, 32-bit ones and predicates
128, 64-bit ones 256. Immediates become registers too, filled once before the kernel starts. Registers do not share
places, whatever their lifetimes.
"""

from __future__ import annotations

from ptxemu.ptx.module import ADDRESS_WIDTH
from ptxemu.ptx.operations import PREDICATE

_SLOT_BYTES = {16: 64, 32: 128, 64: 256, PREDICATE: 128}


class RegisterFile:
    """The registers of one kernel and of all that it calls, in the order of their first use.

    Attributes:
        widths: of every register that was declared, under its full name.
        specials: special registers that were asked for -> their offsets.
        size: bytes of all.
    """

    def __init__(self) -> None:
        self.widths: dict[str, int] = {}
        self.specials: dict[str, int] = {}
        self.size = 0
        self._named: dict[str, tuple[int, int]] = {}
        self._constants: dict[tuple[int, int], int] = {}
        self._dynamic_constants: dict[tuple[int, int], int] = {}
        self._temporaries = 0

    def _slot(self, width: int) -> int:
        offset = self.size
        self.size += _SLOT_BYTES[width]
        return offset

    def temporary(self, prefix: str, width: int) -> str:
        """Declare a register that no PTX names. Returns its name without the prefix."""
        name = f"%kb_temporary{self._temporaries}"
        self._temporaries += 1
        self.widths[prefix + name] = width
        return name

    def named(self, name: str) -> tuple[int, int]:
        """Offset and width of a register that was declared."""
        if name not in self._named:
            width = self.widths[name]
            self._named[name] = (self._slot(width), width)
        return self._named[name]

    def constant(self, value: int, width: int) -> int:
        """Offset of a register that holds a constant."""
        mask = (1 << 64) - 1 if width in (64, ADDRESS_WIDTH) else 0xFFFFFFFF if width != 16 else 0xFFFF
        key = (value & mask, width)
        if key not in self._constants:
            self._constants[key] = self._slot(64 if width == ADDRESS_WIDTH else width)
        return self._constants[key]

    def dynamic_constant(self, addend: int, width: int) -> int:
        """Offset of a register that holds an address in dynamic shared memory."""
        if (addend, width) not in self._dynamic_constants:
            self._dynamic_constants[addend, width] = self._slot(width)
        return self._dynamic_constants[addend, width]

    def special(self, name: str) -> int:
        """Offset of a special register: of 32 bits."""
        if name not in self.specials:
            self.specials[name] = self._slot(32)
        return self.specials[name]

    def own(self, function: str) -> list[int]:
        """Offset and width, alternating, of every register that only this function uses."""
        found = [pair for name, pair in self._named.items() if name.startswith(f"{function}/")]
        return [word for offset, width in found for word in (offset, 32 if width == PREDICATE else width)]

    def constants(self, dynamic: int) -> list[tuple[int, int, int]]:
        """Offset, width and value of all constants; `dynamic`: where dynamic shared memory begins."""
        fixed = [(offset, width, value) for (value, width), offset in self._constants.items()]
        return fixed + [
            (offset, width, dynamic + addend) for (addend, width), offset in self._dynamic_constants.items()
        ]
