"""Where the stores of a kernel may go: a slice backwards from their addresses, to parameters and variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptxemu.ptx.analysis.dataflow import STORES, addresses, flow
from ptxemu.ptx.tree import Address, Label, Statement


@dataclass(frozen=True)
class Places:
    """What the addresses of stores are computed from.

    Attributes:
        parameters: name of a parameter, and the offset in it, of 64-bit values.
        symbols: names that are no registers: variables, and whatever else a function names.
        anywhere: values from memory are among it, which may be pointers, or a tensor map or surface, which
            holds one.
    """

    parameters: frozenset[tuple[str, int]]
    symbols: frozenset[str]
    anywhere: bool


def written_places(body: Sequence[Statement | Label]) -> Places:
    """What the addresses of a kernel's stores to global memory are computed from; rather too much than too little."""
    statements = [item for item in body if isinstance(item, Statement)]
    wanted = {name for item in statements for name in _targets(item)}
    flows = [(item, flow(item)) for item in statements]
    parameters: set[tuple[str, int]] = set()
    anywhere = any(
        item.parts[0] == "sust" or ("tensor" in item.parts and "bulk_group" in item.parts) for item in statements
    )
    grown = True
    while grown:
        before = len(wanted)
        for item, one in flows:
            if not one.results & wanted:
                continue
            if "param" in item.parts and isinstance(item.operands[1], Address):
                if item.parts[-1].endswith("64"):
                    parameters.add((item.operands[1].base, item.operands[1].offset))
            elif one.is_load:
                anywhere = True
            else:
                wanted |= one.sources
        grown = len(wanted) > before
    return Places(frozenset(parameters), frozenset(name for name in wanted if name[:1] != "%"), anywhere)


def _targets(item: Statement) -> Iterator[str]:
    """Address registers of a store that may go to global memory."""
    spaces = {part.partition("::")[0] for part in item.parts}
    if item.parts[0] == "cp":
        if "bulk" in item.parts:
            yield from addresses(item.operands)
        return
    stores = item.parts[0] in STORES or (item.parts[0] == "wmma" and "store" in item.parts)
    if stores and ("global" in spaces or not spaces & {"shared", "local", "param"}):
        yield from addresses(item.operands)
