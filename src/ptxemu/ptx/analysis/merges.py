"""Which narrow loads from shared memory ptxas merges into wide ones.

Loads of neighbouring words through one register, with nothing between them that could change the words, become one
load of up to 16 bytes a lane. That the address is aligned, ptxas has to know; here it is taken to. Counters leave the
merged loads out: the first of each group stands for all, with the passes that it takes alone, which are those of the
wide load where lanes read the same words or words 16 bytes apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxemu.ptx.tree import Address, Group, Label, Operand, Statement

WIDEST = 16
_BYTES = {"b32": 4, "u32": 4, "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}
_FENCES = frozenset(["bar", "barrier", "bra", "brx", "call", "ret", "exit", "membar", "fence", "atom", "red", "cp"])


def merged_loads(body: Sequence[Statement | Label]) -> dict[int, int]:
    """Index in the body -> bytes per lane of the wide load it stands for, or 0 when another one stands for it."""
    merged: dict[int, int] = {}
    open_loads: dict[tuple[str, int], dict[int, int]] = {}
    for index, item in enumerate(body):
        if isinstance(item, Label) or item.parts[0] in _FENCES or _writes_shared(item):
            _close(open_loads, merged)
            open_loads = {}
            continue
        found = _narrow_load(item)
        if found is not None:
            base, offset, size = found
            open_loads.setdefault((base, size), {}).setdefault(offset, index)
        for name in _written(item):
            for key in [key for key in open_loads if key[0] == name]:
                _close({key: open_loads.pop(key)}, merged)
    _close(open_loads, merged)
    return merged


def _narrow_load(item: Statement) -> tuple[str, int, int] | None:
    """Register, offset and bytes of an unguarded scalar load from shared memory; None for any other statement."""
    if item.parts[0] != "ld" or len(item.parts) != 3 or item.guard is not None or len(item.operands) != 2:
        return None
    _, space, kind = item.parts
    address = item.operands[1]
    if space.partition("::")[0] != "shared" or kind not in _BYTES or not isinstance(address, Address):
        return None
    return address.base, address.offset, _BYTES[kind]


def _writes_shared(item: Statement) -> bool:
    return item.parts[0] in ("st", "stmatrix") and "global" not in item.parts


def _written(item: Statement) -> Iterator[str]:
    if item.parts[0] != "st" and item.operands:
        yield from _names(item.operands[0])


def _names(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Group):
        for one in operand.items:
            yield from _names(one)
    elif isinstance(operand, str):
        yield operand


def _close(open_loads: Mapping[tuple[str, int], Mapping[int, int]], merged: dict[int, int]) -> None:
    """Merge what is complete: aligned groups of the widest load, then of half of it."""
    for (_, size), by_offset in open_loads.items():
        left = dict(by_offset)
        width = WIDEST
        while width > size:
            for start in [offset for offset in left if offset % width == 0]:
                group = [start + step for step in range(0, width, size)]
                if all(offset in left for offset in group):
                    places = sorted(left.pop(offset) for offset in group)
                    merged |= {places[0]: width} | dict.fromkeys(places[1:], 0)
            width //= 2
