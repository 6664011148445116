"""`cp.async.bulk` and `cp.reduce.async.bulk`: copies between global and shared memory, of bytes and by tensor maps."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.ptx import module as out
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.selection.memory import locate
from ptxemu.ptx.tree import Address, Group, Operand, Statement, integer

_TO_SHARED, _MULTICAST, _INSIDE, _IM2COL = 1, 2, 4, 8
_RANK_SHIFT, _OFFSETS_SHIFT, _REDUCTION_SHIFT, _TYPE_SHIFT = 4, 8, 16, 24
_REDUCTIONS = {name: k for k, name in enumerate(("add", "min", "max", "inc", "dec", "and", "or", "xor"), 1)}
_TYPES = {
    "u8": 0, "u16": 1, "u32": 2, "b32": 2, "s32": 3, "u64": 4, "b64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8,
    "bf16": 9,
}  # fmt: skip
"""Numbers of element types in the core; without a sign where none matters."""
_SPACES = {"shared::cluster": "shared", "shared::cta": "shared", "global": "global"}
_COMPLETIONS = {True: "mbarrier::complete_tx::bytes", False: "bulk_group"}
_HINTS = frozenset(["L2::cache_hint", "noftz", "tile", "im2col", "im2col_no_offs", "multicast::cluster"])


def bulk_copy(low: FunctionLowering, statement: Statement) -> None:
    """`cp.async.bulk` and its groups, and `cp.reduce.async.bulk`."""
    parts = [part for part in statement.parts[1:] if part not in ("async", "bulk", "reduce")]
    if parts[0] == "commit_group":
        low.emit("bulk_commit", [], "bar")
    elif parts[0] == "wait_group":
        if not isinstance(statement.operands[0], str):
            raise low.unsupported("a number of groups is expected")
        low.emit("bulk_wait", [], "bar", immediate=integer(statement.operands[0]))
    elif parts[0] == "prefetch":
        low.emit("nop", [], "alu")
    else:
        _Copy(low, statement, parts).emit()


class _Copy:
    """The modifiers and operands of a copy, sorted out."""

    def __init__(self, low: FunctionLowering, statement: Statement, parts: list[str]) -> None:
        self.low, self.operands = low, list(statement.operands)
        self.rank = int(parts[1][0]) if parts[0] == "tensor" else 0
        places, modifiers = (parts[2:4], parts[4:]) if self.rank else (parts[:2], parts[2:])
        if len(places) != 2 or any(place not in _SPACES for place in places):
            raise low.unsupported("a bulk copy between these spaces")
        to, source = (_SPACES[place] for place in places)
        self.into = to == "shared"
        self.inside = to == source
        self.multicast = "multicast::cluster" in modifiers
        self.im2col = any(part.startswith("im2col") for part in modifiers)
        reduction = [part for part in modifiers if part in _REDUCTIONS] if "reduce" in statement.parts else []
        kinds = [part for part in modifiers if part in _TYPES] if reduction else []
        self.reduction = _REDUCTIONS[reduction[0]] if reduction else 0
        self.kind = _TYPES[kinds[0]] if kinds else 0
        known = {_COMPLETIONS[self.into], *_HINTS, *reduction, *kinds}
        if to == source == "global" or _COMPLETIONS[self.into] not in modifiers or set(modifiers) - known:
            raise low.unsupported("a bulk copy of this form")
        if reduction and not self.into:
            low.kernel.order_dependent = True

    def emit(self) -> None:
        """Operands: destination, source, bytes, the mbarrier, im2col offsets, a multicast's mask, a cache policy."""
        low, (target, source, *rest) = self.low, self.operands
        near, far = (target, source) if self.into else (source, target)
        _, shared, shared_wide, shared_offset = locate(low, near, "shared")
        coordinates: Sequence[Operand] = ()
        if self.rank:
            far, coordinates = self._coordinates(far)
        base, far_offset = self._far(far)
        size = low.read(rest.pop(0), 32) if not self.rank else 0
        barrier = barrier_wide = barrier_offset = 0
        if self.into:
            _, barrier, barrier_wide, barrier_offset = locate(low, rest.pop(0), "shared")
        offsets = self._offsets(rest) if self.im2col else []
        mask = low.read(rest.pop(0), 16) if self.multicast else 0
        start = len(low.kernel.registers)
        low.kernel.registers += [barrier, mask, *(low.read(one, 32) for one in coordinates), *offsets]
        low.emit(
            "bulk_tensor" if self.rank else "bulk_copy",
            [shared, shared_offset & 0xFFFFFFFF, size, start, base, barrier_offset & 0xFFFFFFFF],
            "bar",
            flags=(out.HAS_RESULT if shared_wide else 0) | barrier_wide,
            immediate=far_offset,
            memory=low.memory("global", "load" if self.into else "store", 16),
            extra=self._form(len(offsets)),
        )

    def _form(self, offsets: int) -> int:
        flags = _TO_SHARED * self.into | _MULTICAST * self.multicast | _INSIDE * self.inside | _IM2COL * self.im2col
        counts = self.rank << _RANK_SHIFT | offsets << _OFFSETS_SHIFT
        return flags | counts | self.reduction << _REDUCTION_SHIFT | self.kind << _TYPE_SHIFT

    def _coordinates(self, operand: Operand) -> tuple[Address, tuple[Operand, ...]]:
        """`[map, {coordinates}]`"""
        if isinstance(operand, Group):
            address, coordinates = operand.items
            if isinstance(address, Address) and isinstance(coordinates, Group) and len(coordinates.items) == self.rank:
                return address, coordinates.items
        raise self.low.unsupported(f"a tensor map with {self.rank} coordinates is expected")

    def _far(self, operand: Operand) -> tuple[int, int]:
        """Register, with 64 bits, and offset of the address that is not in shared memory, or of the source there."""
        space = "shared" if self.inside else "generic" if self.rank else "global"
        found, base, wide, offset = locate(self.low, operand, space)
        if not wide and self.inside:
            widened = self.low.register(self.low.temporary(64))
            self.low.emit("cvt_b64_u32", [widened, base], "mov")
            return widened, offset
        if not wide:
            raise self.low.unsupported("32-bit global addresses")
        if found not in ("global", "shared", "generic"):
            raise self.low.unsupported("a tensor map that is no generic address")
        return base, offset

    def _offsets(self, rest: list[Operand]) -> list[int]:
        """Of an im2col load, one per dimension of space; stores have none."""
        if not self.into:
            return []
        group = rest.pop(0)
        if not isinstance(group, Group) or len(group.items) != self.rank - 2:
            raise self.low.unsupported(f"{self.rank - 2} im2col offsets are expected")
        return [self.low.read(one, 16) for one in group.items]
