"""What one statement of PTX reads and writes: registers, and spaces of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ptxemu.ptx.tree import Address, Group, Operand, Statement

_LOADS = frozenset(["ld", "ldu", "ldmatrix", "atom", "suld"])
_TEXTURES = frozenset(["tex", "tld4"])
"""Read memory that the kernel does not write."""
STORES = frozenset(["st", "stmatrix", "red", "atom", "sust"])
_NO_RESULT = frozenset(
    ["st", "stmatrix", "sust", "red", "bra", "brx", "ret", "exit", "cp", "mbarrier", "fence", "membar"]
)
_WRITTEN = frozenset(["global", "shared", "local"])
_CONSTANT = frozenset(["param", "const"])


@dataclass(frozen=True, slots=True)
class DataFlow:
    """What one statement writes and reads.

    Attributes:
        results: registers that it writes.
        sources: registers that it reads, for addresses, too.
        loads: spaces that it reads, as far as the kernel itself may write there.
        stores: spaces that it writes.
        is_load: whether results, or what it stores, come from memory.
    """

    results: frozenset[str]
    sources: frozenset[str]
    loads: frozenset[str]
    stores: frozenset[str]
    is_load: bool


def flow(item: Statement) -> DataFlow:
    """Of one statement. Registers stand under their names, spaces in brackets: `[shared]`."""
    head, operands = item.parts[0], item.operands
    returns = head not in _NO_RESULT and bool(operands) and (head not in ("bar", "barrier") or "red" in item.parts)
    results = frozenset(names(operands[:1])) if returns else frozenset()
    sources = frozenset(names(operands[1 if returns else 0 :]))
    if item.guard is not None:
        sources |= {item.guard}
    loads, stores = _spaces_read(item), _spaces_written(item)
    return DataFlow(results, sources, loads, stores, is_load=bool(loads) or head in _LOADS | _TEXTURES)


def _spaces_read(item: Statement) -> frozenset[str]:
    """Spaces that the kernel itself may have written and the statement may read, each as the name of a variable."""
    head, parts = item.parts[0], item.parts
    if head == "cp" and "async" in parts:
        return frozenset(["[global]"])
    if head not in _LOADS and not (head == "wmma" and "load" in parts):
        return frozenset()
    if "nc" in parts or _CONSTANT & _named(parts):
        return frozenset()
    return _variables(parts)


def _spaces_written(item: Statement) -> frozenset[str]:
    head, parts = item.parts[0], item.parts
    if head == "cp" and "async" in parts:
        return frozenset(["[shared]", "[global]"]) if "bulk" in parts else frozenset(["[shared]"])
    if head in STORES or (head == "wmma" and "store" in parts):
        return _variables(parts)
    return frozenset()


def _variables(parts: Sequence[str]) -> frozenset[str]:
    named = _named(parts) & _WRITTEN
    return frozenset(f"[{space}]" for space in named or _WRITTEN)


def _named(parts: Sequence[str]) -> frozenset[str]:
    return frozenset(part.partition("::")[0] for part in parts)


def addresses(operands: Iterable[Operand]) -> Iterator[str]:
    """What the addresses among operands begin with."""
    for operand in operands:
        if isinstance(operand, Address):
            yield operand.base
        elif isinstance(operand, Group):
            yield from addresses(operand.items)


def names(operands: Iterable[Operand]) -> Iterator[str]:
    """All names among operands."""
    for operand in operands:
        if isinstance(operand, Address):
            yield operand.base
        elif isinstance(operand, Group):
            yield from names(operand.items)
        else:
            yield operand.removeprefix("!")
