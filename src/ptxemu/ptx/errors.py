"""The one error of this package: PTX that the emulator cannot execute faithfully."""

from __future__ import annotations


class NotEmulatable(Exception):
    """The PTX uses something the SIMT core lacks; it is a fact about the program, not a failure of the machine.

    Args:
        instruction: the PTX instruction or directive, as written.
        line: its line in the PTX text, 1-based; 0 when it has none.
        reason: what exactly is missing.
    """

    def __init__(self, instruction: str, line: int, reason: str = "the emulator has no such operation") -> None:
        super().__init__(f"PTX line {line}: {instruction}: {reason}")
        self.instruction = instruction
        self.line = line
        self.reason = reason
