"""Errors that reach whoever runs the emulator: one line on what is wrong, one on what to do, and an exit code."""

from __future__ import annotations


class EmulatorError(Exception):
    """Base of all of them: this machine, or the emulator, cannot do what was asked.

    Args:
        message: one line, what is wrong.
        hint: one line, what to do about it.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(EmulatorError):
    """An argument or a file cannot be used: no such file, architecture or GPU."""

    exit_code = 2


class ToolkitMissing(EmulatorError):
    """nvcc, g++ or c++filt is not on this machine, or does not work."""


class CoreFailure(EmulatorError):
    """The core does not build, or what it or ptxas wrote does not read: no program is to blame."""


class ProgramDoesNotBuild(InvalidInput):
    """nvcc, ptxas or the linker refuses the program. `log` is what they printed."""

    def __init__(self, message: str, *, hint: str, log: str) -> None:
        super().__init__(message, hint=hint)
        self.log = log


class ProgramNotEmulatable(EmulatorError):
    """The program needs an instruction, a runtime function or a library that the emulator lacks.

    `log` is what the assembler or the linker said.
    """

    def __init__(self, message: str, *, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log
