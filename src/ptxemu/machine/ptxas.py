"""Reads what `ptxas -v` says about each kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"\s*(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d{1,9}) registers")
_SHARED = re.compile(r"(?<!\d)(\d{1,9}) bytes smem")


@dataclass(frozen=True)
class PtxasResources:
    """What ptxas reports of one kernel; sizes in bytes.

    Attributes:
        name: readable name.
        symbol: mangled name.
        registers: 32-bit registers of a thread.
        shared_bytes: static shared memory of a block.
        spill_store_bytes, spill_load_bytes: of a thread.
        stack_bytes: local memory of a thread.
    """

    name: str
    symbol: str
    registers: int
    shared_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int


def parse_resources(report: str, demangle: Callable[[Sequence[str]], Sequence[str]]) -> tuple[PtxasResources, ...]:
    """Resources of every entry function of a report, in its order, with readable names.

    A kernel without a complete entry is left out: a missing figure is never a zero. Static shared memory is zero
    when ptxas does not mention it, because it prints only what is used.
    """
    stacks: dict[str, tuple[int, int, int]] = {}
    used: dict[str, tuple[int, int]] = {}
    entry = function = None
    for line in report.splitlines():
        if match := _ENTRY.search(line):
            entry = match[1]
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif (match := _STACK.match(line)) and function is not None:
            stacks[function] = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _REGISTERS.search(line)) and entry is not None:
            shared = _SHARED.search(line)
            used[entry] = (int(match[1]), int(shared[1]) if shared else 0)
            entry = None
    symbols = [symbol for symbol in used if symbol in stacks]
    return tuple(
        _resources(symbol, name, used[symbol], stacks[symbol])
        for symbol, name in zip(symbols, demangle(symbols), strict=True)
    )


def _resources(symbol: str, name: str, used: tuple[int, int], stack: tuple[int, int, int]) -> PtxasResources:
    return PtxasResources(
        name=name,
        symbol=symbol,
        registers=used[0],
        shared_bytes=used[1],
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
    )
