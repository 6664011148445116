"""What a parsed PTX text consists of. Plain data; what an instruction means is not known here."""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_BYTES = {
    **{f".{kind}{width}": width // 8 for kind in "bus" for width in (8, 16, 32, 64)},
    **{f".f{width}": width // 8 for width in (16, 32, 64)},
    ".b128": 16,
    ".f16x2": 4,
    ".bf16": 2,
    ".bf16x2": 4,
    ".u16x2": 4,
    ".s16x2": 4,
    ".tf32": 4,
    ".e4m3x2": 2,
    ".e5m2x2": 2,
    ".pred": 4,
}


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`"""

    base: str
    offset: int


@dataclass(frozen=True, slots=True)
class Group:
    """Operands in `{ }` or `( )`, or the pair `a|b`."""

    items: tuple[Operand, ...]


Operand = str | Address | Group
SourceChain = tuple[tuple[str, int], ...]
"""(file number, line) of a statement, and of the calls through which it was inlined, innermost first."""


@dataclass(slots=True)
class Statement:
    """One instruction. `guard` is a predicate register, negated when `negated`."""

    parts: tuple[str, ...]
    operands: list[Operand]
    line: int
    source: SourceChain
    guard: str | None = None
    negated: bool = False

    @property
    def text(self) -> str:
        """The instruction's name as written."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target, or the name of a `.branchtargets` list."""

    name: str
    targets: tuple[str, ...] = ()


@dataclass(slots=True)
class Declared:
    """A variable: its space, bytes and, when given, initial elements (numbers, or symbols with an addend)."""

    name: str
    space: str
    align: int
    size: int
    kind: str
    """Type of its elements, `.f32`."""
    initial: list[str] = field(default_factory=list)
    unsized: bool = False
    line: int = 0
    managed: bool = False
    """Whether the host has it, too."""

    @property
    def element_bytes(self) -> int:
        """Of one element."""
        return TYPE_BYTES[self.kind]


@dataclass(slots=True)
class Function:
    """A kernel or a device function with its flat body."""

    name: str
    is_kernel: bool
    parameters: list[Declared]
    results: list[Declared]
    line: int
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Declared] = field(default_factory=list)
    body: list[Statement | Label] = field(default_factory=list)
    required_block: tuple[int, int, int] = (0, 0, 0)
    max_threads: int = 0
    required_cluster: tuple[int, int, int] = (0, 0, 0)
    defined: bool = False


@dataclass(slots=True)
class Program:
    """A parsed PTX text."""

    variables: list[Declared] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def integer(token: str) -> int:
    """An integer literal. Raises ValueError for anything else, and for what 64 bits do not hold."""
    digits = token.rstrip("U")
    value = int(digits, 8) if digits[:1] == "0" and digits[1:].isdigit() else int(digits, 0)
    if value >> 64:
        raise ValueError(f"{token} does not fit 64 bits")
    return value


def literal(token: str) -> int | None:
    """Bits of a literal operand, as a number that may be negative; None when the token is none."""
    negative = token.startswith("-")
    text = token.lstrip("-")
    if text[:2] in ("0f", "0F") and len(text) == 10:
        return int(text[2:], 16)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        return int(text[2:], 16)
    if text[:1].isdigit():
        return -integer(text) if negative else integer(text)
    if token in ("true", "false"):
        return -(token == "true")
    return 32 if token == "WARP_SZ" else None
