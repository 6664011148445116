"""The operations of the core and the types of their operands, read from the core's own `.def` files.

A `.def` line names one operation, or with a family macro several; the expansion rules here mirror the macros beside
the handlers. Operand widths are what matters: `pred`, 16, 32 or 64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ptxemu.ptx.tree import TYPE_BYTES

_DEFINITIONS = Path(__file__).resolve().parents[1] / "core" / "src"
_LINE = re.compile(r"^([A-Z_]+)(\d?)\((\w+), ?(.*)\)$")
PREDICATE = 1
WIDTH = {
    "pred": PREDICATE, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "u32": 32, "s32": 32, "f32": 32,
    "u64": 64, "s64": 64, "f64": 64,
}  # fmt: skip
_HALVES = {"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32}
_DIRECTED = ("rz", "rm", "rp")
_INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")

Signature = tuple[int, ...]
"""Width of the result, then of each source."""


@cache
def signatures() -> dict[str, Signature]:
    """Operation name -> operand widths, of every per-lane operation."""
    found: dict[str, Signature] = {}
    for name in ("integer", "float", "directed", "half", "convert"):
        for line in (_DEFINITIONS / f"{name}.def").read_text(encoding="utf-8").splitlines():
            if match := _LINE.match(line):
                found.update(_expand(*match.groups()))
    found["cvt_f32_f16"] = (32, 16)
    found["cvt_rn_f16_f32"] = (16, 32)
    return found


@cache
def memory_operations() -> frozenset[str]:
    """Stems of loads and stores, and names of atomics, vectors included."""
    text = "".join((_DEFINITIONS / f"{name}.def").read_text(encoding="utf-8") for name in ("memory", "atomic"))
    vectors = re.findall(r"^ATOMIC_VECTOR\((\w+),", text, re.MULTILINE)
    found = re.findall(r"^(?:LOAD|STORE|ATOMIC)\((\w+),", text, re.MULTILINE)
    return frozenset([*found, *vectors, *(f"{name}_v{n}" for name in vectors for n in (2, 4, 8))])


def _expand(family: str, arity: str, stem: str, rest: str) -> Iterator[tuple[str, Signature]]:
    count = int(arity or 0)
    if family == "OP":
        yield stem, tuple(WIDTH[word.strip()] for word in rest.split(",")[: count + 1])
    elif family in ("FLOAT", "SINGLE"):
        yield stem + "_f32", (32,) * (count + 1)
        yield stem + "_ftz_f32", (32,) * (count + 1)
        if family == "FLOAT":
            yield stem + "_f64", (64,) * (count + 1)
    elif family == "DIRECTED":
        for mode in _DIRECTED:
            yield f"{stem}_{mode}_f32", (32,) * (count + 1)
            yield f"{stem}_{mode}_f64", (64,) * (count + 1)
    elif family == "DIRECTED_INTEGER":
        for mode in _DIRECTED:
            yield f"cvt_{mode}_{stem}_{rest}", (WIDTH[stem], WIDTH[rest])
    elif family == "FROM_INTEGER":
        for mode in ("rn", *_DIRECTED):
            yield f"cvt_{mode}_f16_{stem}", (16, WIDTH[stem])
            yield f"cvt_{mode}_bf16_{stem}", (16, WIDTH[stem])
    elif family == "HALF":
        for kind, width in _HALVES.items():
            yield f"{stem}_{kind}", (width,) * (count + 1)
    else:
        yield from _expand_comparison(family, stem)


def _expand_comparison(family: str, stem: str) -> Iterator[tuple[str, Signature]]:
    if family == "COMPARE_INTEGER":
        for kind in _INTEGERS:
            yield f"setp_{stem}_{kind}", (PREDICATE, WIDTH[kind], WIDTH[kind])
    elif family == "COMPARE_FLOAT":
        for kind, width in (("f32", 32), ("ftz_f32", 32), ("f64", 64)):
            yield f"setp_{stem}_{kind}", (PREDICATE, width, width)
    elif family == "COMPARE_HALF":
        for kind in ("f16", "bf16"):
            yield f"setp_{stem}_{kind}", (PREDICATE, 16, 16)
            yield f"setmask_{stem}_{kind}x2", (32, 32, 32)
    elif family == "ROUND_TO_INTEGRAL":
        for kind in ("f32", "f64", "f16", "bf16"):
            yield f"cvt_{stem}_{kind}_{kind}", (WIDTH[kind], WIDTH[kind])
    elif family == "TO_INTEGER":
        width = 64 if stem.endswith("64") else 32
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for kind in ("f32", "f64", "f16", "bf16"):
                yield f"cvt_{mode}_{stem}_{kind}", (width, WIDTH[kind])


def width_of(kind: str) -> int:
    """Width of a PTX type without its dot, in bits; predicates have a width of their own."""
    return PREDICATE if kind == "pred" else TYPE_BYTES["." + kind] * 8
