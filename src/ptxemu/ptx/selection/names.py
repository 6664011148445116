"""Names: under which the core knows an instruction, and the report counts it."""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import signatures
from ptxemu.ptx.tree import TYPE_BYTES

_TRANSCENDENTAL = frozenset(["ex2", "lg2", "sin", "cos", "rsqrt", "tanh"])
_LEFT_OUT = {
    **dict.fromkeys(("txq", "suq"), "questions about textures and surfaces are not emulated"),
    "sured": "reductions on surfaces are not emulated",
    "tensormap": "tensor maps that kernels change are not emulated",
    "multimem": "memory of several GPUs is not emulated",
    "tcgen05": "tensor memory (tcgen05) is not emulated",
}
"""Why whole families of instructions are missing, where the name alone would not say."""


def instruction_class(parts: tuple[str, ...]) -> str:
    """The class under which the report counts an arithmetic instruction."""
    base, kind = parts[0], parts[-1]
    if kind == "f64":
        return "fp64"
    if "f16" in kind and base not in _TRANSCENDENTAL:
        return "fp16"
    if base in _TRANSCENDENTAL:
        return "xu"
    if base in ("div", "sqrt", "rcp"):
        if kind != "f32":
            return "idiv"
        return "xu" if "approx" in parts or "full" in parts else "fdiv"
    if base == "rem":
        return "idiv"
    if kind == "f32" and base in ("fma", "mad"):
        return "ffma"
    if kind == "f32" and base in ("add", "sub", "mul"):
        return "fp32"
    if base in ("mul", "mad", "mul24", "dp4a", "dp2a", "madc"):
        return "imad"
    return "int" if base in ("add", "sub", "addc", "subc") else "alu"


def spellings(parts: tuple[str, ...]) -> Iterator[str]:
    """Names under which the core may know an instruction, the exact one first."""
    kept = [part.lower() for part in parts]
    if kept[0] in ("add", "sub", "mul") and "rn" in kept:
        kept.remove("rn")
    if kept[-1] == "relu":  # written behind the type
        kept.insert(1, kept.pop())
    yield "_".join(kept)
    if kept[-1] == "f32" and "ftz" in kept:
        yield "_".join((*(part for part in kept[:-1] if part != "ftz"), "ftz", "f32"))  # `.ftz.sat` in PTX
    kind = kept[-1]
    if kind in ("u16x2", "s16x2"):
        yield "_".join((*kept[:-1], "b16x2"))
    if "." + kind in TYPE_BYTES and kind not in ("f16x2", "bf16x2", "pred", "bf16"):
        stem, width = "_".join(kept[:-1]), kind[1:]
        if kind[0] != "f" or kept[0] in ("selp", "mov"):
            yield f"{stem}_b{width}"
        if kind[0] == "b":
            yield f"{stem}_u{width}"


def known_name(low: FunctionLowering, parts: tuple[str, ...]) -> str:
    """The core's name of an instruction. Raises NotEmulatable."""
    for name in spellings(parts):
        if name in signatures():
            return name
    raise low.unsupported(_LEFT_OUT[parts[0]]) if parts[0] in _LEFT_OUT else low.unsupported()
