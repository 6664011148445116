"""Assembled code and its file format (described in `core/src/program.hpp`, whose reader is the other half)."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

MAGIC = b"KBEMU9\0\0"
OPERANDS = 6
ADDRESS_WIDTH = 0x80
"""Width of a constant that is the address of a variable; the core resolves it when the module is placed."""

GUARDED, GUARD_NEGATED, BYPASS_L1, HAS_RESULT, FULL_BLOCK, ARRIVE_ONLY, WIDE_ADDRESS, CLUSTER = (
    1 << k for k in range(8)
)
"""Instruction flags."""


@dataclass(slots=True)
class Instruction:
    """One operation of the core; operands are byte offsets into the register file."""

    operation: str
    kind: str
    operands: tuple[int, ...]
    line: int
    source: int
    flags: int = 0
    guard: int = 0
    immediate: int = 0
    memory: int = 0
    extra: int = 0
    counted: str = ""
    """Operation whose counters it adds to; its own when empty."""
    wait: int = 0
    """Kind of latency that a warp waits for here, see `analysis/waits.py`."""
    target: str | None = None
    """Label whose position becomes the immediate."""


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """What the counters of a memory instruction are labelled with."""

    space: str
    op: str
    bytes_per_lane: int
    line: int
    source: int
    steers: bool
    """Whether what it reads may decide what is executed, or where, see `analysis/steering.py`."""


@dataclass(slots=True)
class WrittenPlaces:
    """Where the stores of a kernel may go in global memory: what these point to."""

    parameters: list[int] = field(default_factory=list)
    """Offsets of pointers among the kernel's parameters."""
    variables: list[int] = field(default_factory=list)
    """Indices of variables of the module."""
    anywhere: bool = False
    """Further places that are not known before it runs."""


@dataclass(slots=True)
class Kernel:
    """An assembled kernel."""

    name: str
    parameters: list[tuple[int, int]]
    parameter_bytes: int
    required_block: tuple[int, int, int]
    max_threads: int
    required_cluster: tuple[int, int, int]
    """Blocks of a cluster along each axis; zeros where the launch decides."""
    entry: int = 0
    """Position of the first instruction; functions that the kernel calls stand before it."""
    register_bytes: int = 0
    static_shared: int = 0
    local_bytes: int = 0
    order_dependent: bool = False
    communicates: bool = False
    """Whether a block may read what another block of the launch has written."""
    registers_per_thread: int = 0
    """As ptxas reports them; 0 where it reports nothing."""
    reach: WrittenPlaces = field(default_factory=WrittenPlaces)
    constants: list[tuple[int, int, int]] = field(default_factory=list)
    specials: list[tuple[int, str]] = field(default_factory=list)
    memory: list[MemoryOperation] = field(default_factory=list)
    registers: list[int] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)


class VariableKind(IntEnum):
    """Where a variable lies: in device memory, in constant memory, or where the host reaches it, too."""

    GLOBAL = 0
    CONSTANT = 1
    MANAGED = 2


@dataclass(slots=True)
class Variable:
    """A `.global` or `.const` variable; relocations are (offset, variable index, addend)."""

    name: str
    kind: VariableKind
    align: int
    size: int
    initial: bytes
    relocations: list[tuple[int, int, int]]


@dataclass(slots=True)
class Module:
    """Assembled kernels and variables of one PTX text."""

    variables: list[Variable] = field(default_factory=list)
    sources: list[tuple[str, int]] = field(default_factory=lambda: [("", 0)])
    kernels: list[Kernel] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write a file that `PTXEMU_MODULE` may name."""
        content = _Writer().module(self)
        path.write_bytes(content + struct.pack("<I", zlib.crc32(content)))


class _Writer:
    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.operations: dict[str, int] = {}
        self.classes: dict[str, int] = {}

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def module(self, module: Module) -> bytes:
        variables = b"".join(self.variable(one) for one in module.variables)
        sources = b"".join(_words(self.string(file), line) for file, line in module.sources)
        kernels = b"".join(self.kernel(one) for one in module.kernels)
        operations = _words(len(self.operations), *map(self.string, self.operations))
        classes = _words(len(self.classes), *map(self.string, self.classes))
        texts = [text.encode() for text in self.strings]
        return b"".join(
            [
                MAGIC,
                _words(len(texts)),
                *(_words(len(text)) + text for text in texts),
                operations,
                classes,
                _words(len(module.variables)) + variables,
                _words(len(module.sources)) + sources,
                _words(len(module.kernels)) + kernels,
            ]
        )

    def variable(self, one: Variable) -> bytes:
        head = _words(self.string(one.name), one.kind, one.align) + struct.pack("<Q", one.size)
        relocations = b"".join(struct.pack("<QIq", *relocation) for relocation in one.relocations)
        return head + _words(len(one.initial)) + one.initial + _words(len(one.relocations)) + relocations

    def kernel(self, one: Kernel) -> bytes:
        positions = (one.parameter_bytes, one.register_bytes, one.static_shared, one.local_bytes)
        return b"".join(
            [
                _words(self.string(one.name), len(one.parameters), *(word for pair in one.parameters for word in pair)),
                _words(*positions, *one.required_block, one.max_threads, *one.required_cluster),
                _words(one.order_dependent, one.communicates),
                _words(one.registers_per_thread, one.entry, one.reach.anywhere),
                _words(len(one.reach.parameters), *one.reach.parameters),
                _words(len(one.reach.variables), *one.reach.variables),
                _words(len(one.constants)),
                *(struct.pack("<IIQ", *constant) for constant in one.constants),
                _words(len(one.specials)),
                *(_words(offset, self.string(name)) for offset, name in one.specials),
                _words(len(one.memory)),
                *(self.memory(instruction) for instruction in one.memory),
                _words(len(one.registers), *one.registers),
                _words(len(one.code)),
                *(self.instruction(instruction) for instruction in one.code),
            ]
        )

    def memory(self, one: MemoryOperation) -> bytes:
        return _words(self.string(one.space), self.string(one.op), one.bytes_per_lane, one.line, one.source, one.steers)

    def instruction(self, one: Instruction) -> bytes:
        operation = self.operations.setdefault(one.operation, len(self.operations))
        counted = self.operations.setdefault(one.counted or one.operation, len(self.operations))
        kind = self.classes.setdefault(one.kind, len(self.classes))
        operands = (*one.operands, *(0,) * OPERANDS)[:OPERANDS]
        return struct.pack(
            "<HHBBII6IqIIII",
            operation, counted, kind, one.wait, one.flags, one.guard, *operands, one.immediate,
            one.memory, one.source, one.line, one.extra,
        )  # fmt: skip


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)
