"""How a candidate fails to build or to run. A failure of the machine is a `DeviceError` instead."""

from __future__ import annotations

from enum import StrEnum


class BuildFailureKind(StrEnum):
    """At which stage a candidate stopped being a program."""

    COMPILE = "compile_error"
    LINK = "load_error"
    POLICY = "reward_hack"
    """It links a library the run forbids, or defines symbols that are not its own."""
    NOT_EMULATABLE = "not_emulatable"


class BuildFailure(Exception):
    """A candidate that cannot be built. `kind` becomes the verdict, `log` goes back to the model."""

    def __init__(self, kind: BuildFailureKind, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.log = log


NO_MEMORY = "cudaErrorMemoryAllocation"
"""Begins the reason where CUDA found no memory on the GPU."""


class RunFailureKind(StrEnum):
    """How a running candidate failed. Values are verdicts."""

    LOAD = "load_error"
    RUNTIME = "runtime_error"
    TIMEOUT = "timeout"
    POLICY = "reward_hack"
    """It answers in the harness' name, or its host code asks for what is refused and nothing contains it."""


class RunFailure(Exception):
    """A candidate crashed, hung or hit a limit."""

    def __init__(self, kind: RunFailureKind, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.log = log
