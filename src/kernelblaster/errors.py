"""Errors that reach a person, typed by the boundary they cross.

Every error carries one line that says what is wrong and one that says what to do. The command line prints
both and exits with `exit_code`. A wrong or slow *candidate* is data (a `Verdict`), never an exception.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command, documented once here and in docs/commands.md.

    `emulate` passes the code of the program on once that has run, and 128 + N when signal N killed it.
    """

    OK = 0
    """The command did what was asked; for `evaluate`: the verdict is `correct`."""
    FAILED = 1
    """`evaluate`: the verdict is not `correct`; `run`: at least one problem failed."""
    USAGE = 2
    """Bad arguments, an unknown problem, an unreadable file."""
    NO_IMPROVEMENT = 3
    """`run`: finished, and no candidate beat the start."""
    MACHINE = 4
    """The machine lacks something: nvcc, a GPU, a permission, disk space; `run`: it could execute no candidate of a
    problem."""
    MODEL = 5
    """The language model refused: wrong key, unreachable; `run`: the recording had no candidate for a problem."""
    BUDGET = 6
    """A budget was reached; what was found until then is kept."""
    WAITING = 75
    """A batch exchange waits for replies (EX_TEMPFAIL); the same command continues."""
    TIMED_OUT = 124
    """`emulate`: the program was still running when its time was up (as timeout(1))."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; the same command continues."""


class KernelBlasterError(Exception):
    """Base of all errors shown to a person.

    Args:
        message: one line, what is wrong.
        hint: one line, what to do about it.
    """

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an exception: within `__set_name__`, for example, Python makes another one of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


class UsageError(KernelBlasterError):
    """An argument or a file given by the person cannot be used."""

    exit_code = ExitCode.USAGE


class ProblemError(UsageError):
    """A problem directory is missing, incomplete or contradicts itself."""


class MachineError(KernelBlasterError):
    """The machine lacks something that the chosen device needs."""

    exit_code = ExitCode.MACHINE


class RecordsError(MachineError):
    """A file of records that a person names, or that ships, is damaged, or is something else."""

    exit_code = ExitCode.USAGE


class DeviceError(MachineError):
    """A device failed for a reason that no candidate caused (GPU lost, tool missing, disk full)."""


class DeviceMemoryFull(DeviceError):
    """The GPU's memory does not suffice; it may be another process that holds it."""


class KnowledgeError(UsageError):
    """A knowledge base file cannot be read, or does not match its schema."""


class ModelError(KernelBlasterError):
    """The language model cannot answer."""

    exit_code = ExitCode.MODEL


class BudgetExceeded(KernelBlasterError):
    """A hard cap (dollars, tokens, wall time) was reached."""

    exit_code = ExitCode.BUDGET
