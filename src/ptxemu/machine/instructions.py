"""What the bits of a machine instruction of sm_80 to sm_100 say: operation, pipe, predicate, branch target.

The lower nine bits name the operation; three further ones say where its operands come from, which does not matter
here. NVIDIA documents names and pipes, but not the encoding: it was read off the code of the conformance programs, of
which `cuobjdump` gave the names, and pipes were checked against the counters of Nsight Compute on an H200.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from ptxemu.machine.cubin import INSTRUCTION_BYTES, CodeWord

_OPERATION_BITS, _ALWAYS = 0x1FF, 7
_SIXTEEN_BYTES, _NO_BARRIER = 6, 7
_ATOMS_POPC = 0xF8C
_GROUPS, _MOST_GROUPS = 38, 0x3F
_WAITS_FOR_PRODUCTS, _PRODUCT_GROUPS, _COMMITTED_TO, _NOT_COMMITTED = 47, 8, 20, 7
_THREAD_INDICES = (0x21, 0x22, 0x23)


class Opcode(IntEnum):
    """Operations that something depends on; each has the number of its lower nine bits."""

    FSETP = 0x00B
    ISETP = 0x00C
    LOP3 = 0x012
    SHF = 0x019
    FMUL = 0x020
    FADD = 0x021
    FFMA = 0x023
    IMAD = 0x024
    IMAD_WIDE = 0x025
    DMUL = 0x028
    DADD = 0x029
    DSETP = 0x02A
    DFMA = 0x02B
    HADD2 = 0x030
    HFMA2 = 0x031
    HMUL2 = 0x032
    HFMA2_MMA = 0x035
    IMMA = 0x037
    LDSM = 0x03B
    HMMA = 0x03C
    DMMA = 0x03F
    STSM = 0x044
    MUFU = 0x108
    NOP = 0x118
    DEPBAR = 0x11A
    BAR = 0x11D
    BRA = 0x147
    BRX = 0x149
    EXIT = 0x14D
    NANOSLEEP = 0x15D
    CCTL = 0x18F
    RET = 0x150
    CALL = 0x144
    BSSY = 0x145
    LD = 0x180
    LDG = 0x181
    LDC = 0x182
    LDL = 0x183
    LDS = 0x184
    ST = 0x185
    STG = 0x186
    STL = 0x187
    STS = 0x188
    SHFL = 0x189
    S2R = 0x119
    ATOM = 0x18A
    ATOM_CAS = 0x18B
    ATOMS = 0x18C
    ATOMS_CAS = 0x18D
    RED = 0x18E
    ATOM_FLOATS = 0x1A2
    ATOMG_FLOATS = 0x1A3
    REDG = 0x1A6
    ATOMG = 0x1A8
    ATOMG_CAS = 0x1A9
    LDGSTS = 0x1AE
    LDGDEPBAR = 0x1AF
    UTMALDG = 0x1B4
    UTMASTG = 0x1B5
    UBLKCP = 0x1BA
    S2UR = 0x1C3
    WARPGROUP = 0x1C5
    REDUX = 0x1C4
    QSPC = 0x1AA
    HGMMA = 0x1F0
    IGMMA = 0x1F1
    BGMMA = 0x1F2
    QGMMA = 0x1F3


PRODUCTS = frozenset((Opcode.HGMMA, Opcode.IGMMA, Opcode.BGMMA, Opcode.QGMMA))
"""By a warpgroup: of floats of 16 and 19 bits, of integers, of bits, of floats of 8 bits."""


class Pipe(StrEnum):
    """Pipes that the timing model knows."""

    ALU = "alu"
    FMA = "fma"
    XU = "xu"
    LSU = "lsu"
    ADU = "adu"
    """Block barriers, computed constants, special registers."""


MEMORY = frozenset((0x180, 0x181, *range(0x183, 0x18F), 0x1A2, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE))
"""Operations of the load/store unit that access memory."""
_PIPES = {
    # moves, selections, comparisons, minima, 32-bit sums, logic, shifts, bytes, packing, votes
    **dict.fromkeys((0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0F, 0x10), Pipe.ALU),
    **dict.fromkeys((0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x19, 0x1A, 0x1B, 0x1C, 0x33, 0x34, 0x3E, 0x40), Pipe.ALU),
    **dict.fromkeys((0x45, 0x46, 0x48), Pipe.ALU),
    # floats, halves, integer products, sums of two
    **dict.fromkeys((0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x30, 0x31, 0x32, 0x36), Pipe.FMA),
    # counting bits, conversions, transcendental functions, the check of a division
    **dict.fromkeys((*range(0x100, 0x10A), *range(0x110, 0x114)), Pipe.XU),
    **dict.fromkeys((*MEMORY, Opcode.LDSM, Opcode.STSM), Pipe.LSU),
    **dict.fromkeys((Opcode.BAR, Opcode.LDC, Opcode.S2R, Opcode.S2UR, Opcode.REDUX), Pipe.ADU),
}

_INTEGER_PRODUCTS = frozenset((0x24, 0x25, 0x26, 0x27, 0x36))
"""Products and dot products of integers: only the heavy half of the FMA pipe has them (Nsight Compute, Kernel Profiling
Guide, pipelines), and the CUDA C++ Programming Guide gives them half the throughput of floats."""
_WIDE_PRODUCTS = frozenset((0x25, 0x27))
"""Those of whose 64 bits all or the upper 32 are wanted, which take twice as long: read off `pipe_modulo_constant` of
the conformance programs on an H200."""
_HALVES = frozenset((0x30, 0x31, 0x32))


@dataclass(frozen=True, slots=True)
class Control:
    """What ptxas tells the scheduler of an instruction.

    Attributes:
        clocks: after which the next one may be issued.
        waits: barriers that must be down before it is issued, a bit each.
        result: barrier that is up until its result is there.
        operands: barrier that is up until it has read its operands.
    """

    clocks: int = 1
    waits: int = 0
    result: int | None = None
    operands: int | None = None


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One machine instruction.

    Attributes:
        operation: see `Opcode`; others are plain numbers.
        line: line of the PTX it stems from, or 0.
        guarded: whether a predicate may switch it off.
        control: how it is scheduled.
        target: position of the instruction that it jumps to or calls, of direct jumps and calls.
        if_diverged: a branch that only warps take whose threads have parted.
        merges_lanes: of an atomic in shared memory, whether it counts the lanes that go to a word and adds that at
            once, which ptxas takes for a sum of ones that nobody reads.
        wide: whether each lane of a load from shared memory loads 16 bytes.
        thread_index: whether it reads the index of a thread in its block.
        left: of `DEPBAR`, how many groups of asynchronous copies may still be under way behind it.
        commits: of products by warpgroups, whether it is the last of its group.
        products_left: of `WARPGROUP.DEPBAR`, how many groups of such products may still be under way behind it.
    """

    operation: int
    line: int
    guarded: bool
    control: Control = Control()
    target: int | None = None
    if_diverged: bool = False
    merges_lanes: bool = False
    wide: bool = False
    thread_index: bool = False
    left: int | None = None
    commits: bool = False
    products_left: int | None = None

    @property
    def pipe(self) -> Pipe | None:
        """What executes it; None for pipes that the model does not know. Thread indices lie in shared memory."""
        return Pipe.LSU if self.thread_index else _PIPES.get(self.operation)

    @property
    def fma_heavy_passes(self) -> int:
        """Passes through the heavy half of the FMA pipe of what only that executes."""
        return (self.operation in _INTEGER_PRODUCTS) + (self.operation in _WIDE_PRODUCTS)

    @property
    def half_precision(self) -> bool:
        """Whether it is arithmetic of half precision, which takes both halves of the FMA pipe."""
        return self.operation in _HALVES


def decode(word: CodeWord, position: int) -> MachineInstruction:
    """The instruction at a position of its section."""
    operation = word.low & _OPERATION_BITS
    guarded, control = word.low >> 12 & 15 != _ALWAYS, _control(word.high)
    if operation not in (Opcode.BRA, Opcode.EXIT, Opcode.CALL):
        wide = operation == Opcode.LDS and word.high >> 9 & 7 == _SIXTEEN_BYTES
        index = operation == Opcode.S2R and word.high >> 8 & 0xFF in _THREAD_INDICES
        left = word.low >> _GROUPS & _MOST_GROUPS if operation == Opcode.DEPBAR else None
        commits = operation in PRODUCTS and word.high >> _COMMITTED_TO & 7 != _NOT_COMMITTED
        waits = operation == Opcode.WARPGROUP and bool(word.low >> _WAITS_FOR_PRODUCTS & 1)
        products_left = word.high >> _PRODUCT_GROUPS & _MOST_GROUPS if waits else None
        merges = word.low & _ATOMS_POPC == _ATOMS_POPC and operation == Opcode.ATOMS
        return MachineInstruction(
            operation, word.line, guarded, control, merges_lanes=merges, wide=wide, thread_index=index, left=left,
            commits=commits, products_left=products_left,
        )  # fmt: skip
    # Branches have a second predicate; two bits say whether warps or parted threads decide.
    mode = word.low >> 32 & 3 if operation == Opcode.BRA else 0
    conditional = guarded or word.high >> 23 & 15 != _ALWAYS or mode != 0
    if operation == Opcode.EXIT:
        return MachineInstruction(operation, word.line, conditional, control)
    return MachineInstruction(operation, word.line, conditional, control, position + 1 + _distance(word), mode == 2)


def _control(high: int) -> Control:
    """The bits from 105 on."""
    result, operands = high >> 46 & 7, high >> 49 & 7
    return Control(
        clocks=max(1, high >> 41 & 15),
        waits=high >> 52 & 0x3F,
        result=None if result == _NO_BARRIER else result,
        operands=None if operands == _NO_BARRIER else operands,
    )


def _distance(word: CodeWord) -> int:
    """Instructions from the one behind a branch to its target: 56 signed bits in units of four bytes, in two parts."""
    upper = word.low >> 34 | (word.high & 0x3FFFF) << 30
    if upper >> 47:
        upper -= 1 << 48
    return (upper << 8 | word.low >> 16 & 0xFF) * 4 // INSTRUCTION_BYTES
