"""Reads what `ptxas -v` says about each kernel of a candidate, for either device."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence

from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.devices.profiles import KernelResources

_SAYS = "ptxas info"
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"\s*(\d{1,9}) bytes stack frame, (\d{1,9}) bytes spill stores, (\d{1,9}) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d{1,9}) registers")
_LOSS, _FUNCTION = "Potential Performance Loss: ", re.compile(r" in (?:the )?function '([^']+)'")
_SHARED = re.compile(r"(?<!\d)(\d{1,9}) bytes smem")


def parse_resources(report: str, demangle: Callable[[Sequence[str]], Sequence[str]]) -> tuple[KernelResources, ...]:
    """Resources of every entry function of a report, in its order, with readable names.

    A kernel without a complete entry is left out: a missing figure is never a zero. Static shared memory is zero
    when ptxas does not mention it, because it prints only what is used.

    Raises:
        BuildFailure: POLICY, something is said twice or out of turn. Messages of the source stand in the same log, and
            can look like lines of ptxas; they cannot take away those that ptxas has written.

    Of a function that is called and not inlined ptxas tells the stack, too, once for each kernel that calls it.
    """
    stacks: dict[str, tuple[int, int, int]] = {}
    used: dict[str, tuple[int, int]] = {}
    losses: dict[str, list[str]] = {}
    entries: set[str] = set()
    called: set[str] = set()
    entry = function = None
    for line in report.splitlines():
        if _LOSS in line:
            told = line.partition(_LOSS)[2]
            if match := _FUNCTION.search(told):
                losses.setdefault(match[1], []).append(told[: match.start()])
        elif line.startswith(_SAYS) and (match := _ENTRY.search(line)):
            entry = _once(match[1] if entry is None else None, entries)
            entries.add(entry)
        elif line.startswith(_SAYS) and (match := _PROPERTIES.search(line)):
            function = _once(match[1] if function is None else None, stacks)
        elif match := _STACK.match(line):
            if function is not None and function != entry:
                called.add(function)
            else:
                stacks[_once(function, stacks)] = (int(match[1]), int(match[2]), int(match[3]))
            function = None
        elif line.startswith(_SAYS) and (match := _REGISTERS.search(line)):
            shared = _SHARED.search(line)
            used[_once(entry, used)] = (int(match[1]), int(shared[1]) if shared else 0)
            entry = None
    for symbol in called:
        _once(symbol, entries)
    symbols = [symbol for symbol in used if symbol in stacks]
    return tuple(
        _resources(symbol, name, used[symbol], stacks[symbol], losses.get(symbol, ()))
        for symbol, name in zip(symbols, demangle(symbols), strict=True)
    )


def _once(function: str | None, told: Container[str]) -> str:
    """A function of which something is told for the first time. Raises BuildFailure for another, and for none."""
    if function is None or function in told:
        raise BuildFailure(
            BuildFailureKind.POLICY,
            f"the compiler's log tells the resources of {function or 'a kernel'} out of turn: a message imitates ptxas",
        )
    return function


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
