"""`tex`, `tld4`, `suld` and `sust`: reads through textures, and accesses to surfaces."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.tree import Address, Group, Operand, Statement

_GEOMETRIES = {
    "1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True),
    "cube": (3, False), "acube": (3, True),
}  # fmt: skip
"""Coordinates, and whether a layer comes first."""
_LAYERED, _INTEGERS, _GATHER = 4, 8, 16
_LEVEL, _GRADIENTS, _CUBE = 1 << 20, 1 << 21, 1 << 22
_COMPONENT_SHIFT, _EDGE_SHIFT, _ELEMENTS_SHIFT, _BYTES_SHIFT = 5, 8, 12, 16
_EDGES = {"trap": 0, "clamp": 1, "zero": 2}
_COUNTS = {"v2": 2, "v4": 4}
_ELEMENT_BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
_KINDS = frozenset(["f32", "s32", "u32"])


class _Place:
    """`[handle, {coordinates}]`"""

    def __init__(self, low: FunctionLowering, statement: Statement, operand: Operand) -> None:
        found = [_GEOMETRIES[part] for part in statement.parts if part in _GEOMETRIES]
        if len(found) != 1:
            raise low.unsupported("a texture of this shape")
        self.axes, self.layered = found[0]
        self.cube = "cube" in statement.parts or "acube" in statement.parts
        base, coordinates = operand.items if isinstance(operand, Group) and len(operand.items) == 2 else ("", "")
        if not isinstance(base, Address):
            raise low.unsupported("a handle and coordinates are expected")
        if not low.is_register(base.base):
            raise low.unsupported("texture references")
        self.handle = low.register(base.base, 64)
        places = list(coordinates.items) if isinstance(coordinates, Group) else [coordinates]
        layer = [places.pop(0)] if self.layered else []
        self.layer = low.read(layer[0], 32) if layer else low.constant(0, 32)
        self.coordinates = [low.read(one, 32) for one in places[: self.axes]]
        if len(self.coordinates) != self.axes:
            raise low.unsupported(f"{self.axes} coordinates are expected")

    @property
    def form(self) -> int:
        return self.axes | (_LAYERED if self.layered else 0) | (_CUBE if self.cube else 0)

    def detail(self, low: FunctionLowering, statement: Statement) -> tuple[int, list[int]]:
        """How a fetch says which level of detail it means: a part of the form, and registers."""
        given = statement.operands[2:]
        if "level" in statement.parts and len(given) == 1:
            return _LEVEL, [low.read(given[0], 32)]
        if "grad" in statement.parts and len(given) == 2 and not self.cube:
            gradients = [list(one.items) if isinstance(one, Group) else [one] for one in given]
            if all(len(one) >= self.axes for one in gradients):
                return _GRADIENTS, [low.read(part, 32) for one in gradients for part in one[: self.axes]]
        if "level" in statement.parts or "grad" in statement.parts or given:
            raise low.unsupported("a level of detail of this form")
        return 0, []

    def registers(self, low: FunctionLowering, values: list[int], detail: Sequence[int] = ()) -> int:
        """Where the list of registers begins."""
        start = len(low.kernel.registers)
        padded = [*self.coordinates, *[self.layer] * (3 - len(self.coordinates))]
        low.kernel.registers += [*values, *[values[0]] * (4 - len(values)), self.handle, self.layer, *padded, *detail]
        return start


def sample(low: FunctionLowering, statement: Statement) -> None:
    """`tex` and `tld4`, whose four results have 32 bits each."""
    parts = statement.parts
    kinds = [part for part in parts[1:] if part in _KINDS]
    gather = parts[0] == "tld4"
    targets, place = statement.operands[0], _Place(low, statement, statement.operands[1])
    if len(kinds) != 2 or not isinstance(targets, Group) or len(targets.items) != 4 or "v4" not in parts:
        raise low.unsupported("a fetch of this form")
    which, detail = (0, []) if gather else place.detail(low, statement)
    form = place.form | which | (_INTEGERS if kinds[1] == "s32" else 0)
    if gather:
        form |= _GATHER | "rgba".index(parts[1]) << _COMPONENT_SHIFT
    values = [low.destination(one, 32) for one in targets.items]
    low.emit(
        "texture_sample",
        [0, 0, 0, place.registers(low, values, detail)],
        "ld_global",
        immediate=form,
        memory=low.memory("texture", "load", 4),
    )


def surface(low: FunctionLowering, statement: Statement) -> None:
    """`suld.b` and `sust.b`"""
    parts, stores = statement.parts, statement.parts[0] == "sust"
    edges = [_EDGES[part] for part in parts if part in _EDGES]
    sizes = [_ELEMENT_BYTES[part] for part in parts[2:] if part in _ELEMENT_BYTES]
    if parts[1] != "b" or len(edges) != 1 or len(sizes) != 1:
        raise low.unsupported("an access to a surface of this form")
    where, what = statement.operands if stores else reversed(statement.operands)
    place = _Place(low, statement, where)
    items = list(what.items) if isinstance(what, Group) else [what]
    count = next((_COUNTS[part] for part in parts if part in _COUNTS), 1)
    if len(items) != count:
        raise low.unsupported("a vector of this length")
    width = max(16, 8 * sizes[0])
    values = [low.read(one, width) if stores else low.destination(one, width) for one in items]
    low.kernel.communicates = True
    low.emit(
        "surface_store" if stores else "surface_load",
        [0, 0, 0, place.registers(low, values)],
        "st_global" if stores else "ld_global",
        immediate=place.form | edges[0] << _EDGE_SHIFT | count << _ELEMENTS_SHIFT | sizes[0] << _BYTES_SHIFT,
        memory=low.memory("texture", "store" if stores else "load", count * sizes[0]),
    )


TEXTURE = {"tex": sample, "tld4": sample, "suld": surface, "sust": surface}
