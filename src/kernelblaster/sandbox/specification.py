"""What a process and its supervisor tell each other, as JSON: one on the command line, the other through a pipe.

The supervisor uses these for type checking alone; it starts without `typing`.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

MountWords = dict[str, str | int]
"""`isolation.MountStep` as JSON carries it."""


class IsolationPlan(TypedDict):
    """The command's limits, and how it is isolated."""

    memory_bytes: int
    file_bytes: int
    disk_bytes: int
    tasks: int
    isolate_network: bool
    forks: bool
    isolation: str
    wrapper: list[str]
    steps: list[MountWords]
    counters: bool
    cwd: str
    written: list[str]


class Descriptors(TypedDict):
    """Inherited file descriptors: the supervisor's two, and those of the command."""

    control: int
    status: int
    command_only: list[int]


class Specification(IsolationPlan, Descriptors):
    """What the supervisor is told."""


class SupervisorReport(TypedDict):
    """How the command ended; of a guard, which is isolated itself, the wait status of the command."""

    code: NotRequired[int | None]
    limit: NotRequired[str | None]
    refused: NotRequired[str | None]
    status: NotRequired[int]
