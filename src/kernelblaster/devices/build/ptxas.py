"""Reads what `ptxas -v` says about each kernel of a candidate, for either device."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kernelblaster.devices.profiles import KernelResources

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_LOSS = re.compile(r"Potential Performance Loss: (.+?) in (?:the )?function '([^']+)'")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(report: str, demangle: Callable[[Sequence[str]], Sequence[str]]) -> tuple[KernelResources, ...]:
    """Resources of every entry function of a report, in its order, with readable names.

    A kernel without a complete entry is left out: a missing figure is never a zero. Static shared memory is zero
    when ptxas does not mention it, because it prints only what is used.
    """
    stacks: dict[str, tuple[int, int, int]] = {}
    used: dict[str, tuple[int, int]] = {}
    losses: dict[str, list[str]] = {}
    entry = function = None
    for line in report.splitlines():
        if match := _LOSS.search(line):
            losses.setdefault(match[2], []).append(match[1])
        elif match := _ENTRY.search(line):
            entry = match[1]
        elif match := _PROPERTIES.search(line):
            function = match[1]
        elif (match := _STACK.search(line)) and function is not None:
            stacks[function] = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _REGISTERS.search(line)) and entry is not None:
            shared = _SHARED.search(line)
            used[entry] = (int(match[1]), int(shared[1]) if shared else 0)
            entry = None
    symbols = [symbol for symbol in used if symbol in stacks]
    return tuple(
        _resources(symbol, name, used[symbol], stacks[symbol], losses.get(symbol, ()))
        for symbol, name in zip(symbols, demangle(symbols), strict=True)
    )


def _resources(
    symbol: str, name: str, used: tuple[int, int], stack: tuple[int, int, int], losses: Sequence[str]
) -> KernelResources:
    return KernelResources(
        name=name,
        symbol=symbol,
        registers=used[0],
        shared_bytes=used[1],
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
        warnings=tuple(dict.fromkeys(losses)),
    )
