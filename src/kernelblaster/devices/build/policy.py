"""The seam between building a candidate and deciding what it may contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kernelblaster.devices.build.elf import Symbols
from kernelblaster.devices.facts import Library


@dataclass(frozen=True)
class CompiledCandidate:
    """What is known of a candidate's object file before it is linked.

    Attributes:
        symbols: what it defines and asks for.
        harness: the same of the host harness that will call it.
        disassembly: its host code, as `objdump -d` prints it; empty where that is contained.
        libraries: those that the run allows.
        contained: whether its host code will run under a filter of system calls.
    """

    symbols: Symbols
    harness: Symbols
    disassembly: str
    libraries: frozenset[Library]
    contained: bool


@dataclass(frozen=True)
class ObjectFindings:
    """What a policy has to say of an object file that it lets pass.

    Attributes:
        hints: what it asks for that leads nowhere in a contained process, a line each.
        own_streams: names, as it asks for them, of functions that work on streams beside the legacy default one.
    """

    hints: tuple[str, ...] = ()
    own_streams: tuple[str, ...] = ()


class CandidatePolicy(Protocol):
    """Decides what a candidate may contain. Builders ask it; they hold no rules of their own."""

    @property
    def version(self) -> str:
        """Other for other rules: builds in the cache are those of one version."""
        ...

    def check_source(self, source: str) -> None:
        """Raise BuildFailure (POLICY) for a source that must not be compiled."""
        ...

    def check_object(self, compiled: CompiledCandidate) -> ObjectFindings:
        """What it asks for. Raises BuildFailure (POLICY) for an object that must not be linked."""
        ...
