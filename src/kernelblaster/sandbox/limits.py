"""What an untrusted command may use, and how it ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum

from kernelblaster.sandbox.isolation import Isolation


@dataclass(frozen=True)
class Limits:
    """What a command may use. Exceeding any of them ends it.

    Attributes:
        memory_bytes: resident anonymous memory of all its processes together (mapped files do not count).
        file_bytes: size of each file it writes.
        disk_bytes: of all files in the directories it may write, together.
        tasks: processes and threads together; CUDA itself starts about ten threads.
        output_bytes: bytes on stdout and stderr together.
        forks: whether it may start processes; a candidate may not, a compiler or profiler must.
        isolate_network: run in an empty network namespace where the system allows it.
        isolation: how it is isolated; None for the strongest that works here.
    """

    memory_bytes: int = 64 << 30
    file_bytes: int = 8 << 30
    disk_bytes: int = 32 << 30
    tasks: int = 256
    output_bytes: int = 256 << 20
    forks: bool = False
    isolate_network: bool = True
    isolation: Isolation | None = None


class ExceededLimit(StrEnum):
    """Which bound ended a command."""

    TIME = "time"
    MEMORY = "memory"
    TASKS = "tasks"
    DISK = "disk"
    OUTPUT = "output"


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    Attributes:
        code: exit status, or minus the number of the signal that killed it.
        exceeded: the bound that was exceeded; None when it ended by itself.
        output: the last 256 KiB of stdout and stderr, as text.
        output_bytes: how much it wrote in all.
        seconds: wall time.
    """

    code: int
    exceeded: ExceededLimit | None
    output: str
    output_bytes: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0. Evidence of nothing else."""
        return self.code == 0 and self.exceeded is None

    def describe(self) -> str:
        """One phrase for a person: `exceeded its memory limit`, `was killed by SIGSEGV`, `exited with status 1`."""
        if self.exceeded is ExceededLimit.TIME:
            return "ran out of time"
        if self.exceeded is not None:
            return f"exceeded its {self.exceeded} limit"
        if self.code < 0:
            return f"was killed by {_signal_name(-self.code)}"
        return f"exited with status {self.code}"


def _signal_name(number: int) -> str:
    known = {int(member): member.name for member in signal.Signals}
    return known.get(number, f"signal {number}")
