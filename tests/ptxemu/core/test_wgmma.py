"""wgmma against NumPy: every type, small and large shapes, operands in every layout that a descriptor names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from ptx_machine import HEAD, Launch, run
from test_tensor import draw

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble

DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
RESULTS = {**dict.fromkeys(("bf16", "tf32"), "f32"), **dict.fromkeys(("s8", "u8"), "s32")}
SWIZZLES = {0: 0, 128: 1, 64: 2, 32: 3}
"""Bytes of a swizzle -> its number in a descriptor."""
REGION = 24 << 10
"""Bytes of shared memory for each operand."""
DYNAMIC = ".extern .shared .align 1024 .b8 memory[];\n"


@dataclass(frozen=True)
class Layout:
    """How an operand lies in shared memory."""

    swizzle: int = 128
    across: bool = False
    """Whether rows of memory lie along M or N rather than along K."""

    def place(self, rows: np.ndarray, k: np.ndarray, bits: int) -> tuple[np.ndarray, int, int]:
        """Byte offset of each element before the swizzle, and the leading and stride offsets that say so.

        Pieces of 16 bytes; eight rows of `width` bytes are an atom. Atoms follow each other without gaps along the
        dimension that the stride offset is for, and further atoms behind.
        """
        per, width = 128 // bits, max(self.swizzle, 16)
        along, other = (rows, k) if self.across else (k, rows)
        piece, inside, line, atom = along // per, along % per * bits // 8, other % 8, other // 8
        in_atom = piece % (width // 16) * 16 + inside + line * width
        if self.swizzle == 0:
            # Cores of 128 bytes: those along the piece axis 144 bytes apart, bands of them behind each other.
            bands, step = int(piece.max()) + 1, 144
            near, far = step, bands * step
            offset = piece * near + atom * far + in_atom
            return (offset, far, near) if self.across else (offset, near, far)
        beyond, size = piece // (width // 16), 8 * width
        atoms = int(atom.max()) + 1
        return in_atom + atom * size + beyond * atoms * size, atoms * size, size

    def image(self, stored: np.ndarray, base: int, bits: int) -> tuple[np.ndarray, int]:
        """The region with the operand (rows x depth) at its beginning, and its descriptor."""
        rows, k = np.indices(stored.shape)
        offset, leading, stride = self.place(rows, k, bits)
        if self.swizzle:
            offset ^= (offset >> 7 & (self.swizzle // 16 - 1)) << 4
        region = np.zeros(REGION, np.uint8)
        size = bits // 8
        cells = np.ascontiguousarray(stored).view(np.uint8).reshape(*stored.shape, size)
        for byte in range(size):
            region[offset + byte] = cells[..., byte]
        fields = (base >> 4) | leading >> 4 << 16 | stride >> 4 << 32 | SWIZZLES[self.swizzle] << 62
        return region, fields


@dataclass(frozen=True)
class Multiply:
    """One form of the instruction."""

    columns: int
    a: str = "f16"
    b: str = ""
    result: str = "f32"
    registers: bool = False
    a_layout: Layout = Layout()
    b_layout: Layout = Layout()
    signs: tuple[int, int] = (1, 1)
    adds: bool = True
    saturates: bool = False

    @property
    def depth(self) -> int:
        return DEPTH[self.a]

    @property
    def results(self) -> int:
        """Registers of a lane's results."""
        return self.columns // (4 if self.result == "f16" else 2)

    def name(self) -> str:
        return f"k{abs(hash(self))}"

    def kernel(self) -> str:
        """Fills shared memory, loads what lies in registers, multiplies, stores."""
        d = [f"%r{k}" for k in range(self.results)]
        shape = f"m64n{self.columns}k{self.depth}{'.satfinite' if self.saturates else ''}"
        source = "{%a0, %a1, %a2, %a3}" if self.registers else "%da"
        halves = self.a in ("f16", "bf16")
        transposes = [int(one.across) for one in (self.a_layout, self.b_layout)][self.registers :] if halves else []
        scales = [] if self.result == "s32" else [*self.signs, *transposes]
        tail = "".join(f", {one}" for one in scales)
        adds = "1" if self.adds else "0"
        lines = [
            f".visible .entry {self.name()}(",
            ".param .u64 images, .param .u64 words, .param .u64 result, .param .u64 regs) {",
            ".reg .b32 %r<128>; .reg .b32 %a<4>; .reg .b32 %t<4>; .reg .b64 %p<6>; .reg .b64 %da; .reg .b64 %db;",
            ".reg .pred %q;",
            "mov.u32 %t0, %tid.x; ld.param.u64 %p0, [images]; mov.u32 %t1, memory; mul.wide.u32 %p1, %t0, 16;",
            "add.u64 %p0, %p0, %p1; mad.lo.u32 %t1, %t0, 16, %t1; mov.u32 %t2, 0;",
            "COPY: ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%p0]; st.shared.v4.u32 [%t1], {%a0, %a1, %a2, %a3};",
            "add.u64 %p0, %p0, 2048; add.u32 %t1, %t1, 2048; add.u32 %t2, %t2, 2048;",
            f"setp.lt.u32 %q, %t2, {2 * REGION}; @%q bra COPY;",
            "fence.proxy.async; bar.sync 0;",
            "ld.param.u64 %p2, [words]; ld.global.u64 %da, [%p2]; ld.global.u64 %db, [%p2+8];",
            # A GPU keeps the first 1024 bytes of shared memory for itself.
            "mov.u32 %t3, memory; shr.u32 %t3, %t3, 4; cvt.u64.u32 %p5, %t3;",
            "add.u64 %da, %da, %p5; add.u64 %db, %db, %p5;",
            "ld.param.u64 %p3, [regs]; mad.wide.u32 %p3, %t0, 16, %p3; ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%p3];",
            f"ld.param.u64 %p4, [result]; mad.wide.u32 %p4, %t0, {4 * len(d)}, %p4;",
            *(f"ld.global.u32 {one}, [%p4+{4 * k}];" for k, one in enumerate(d)),
            f"setp.ne.u32 %q, {adds}, 0; wgmma.fence.sync.aligned;",
            f"wgmma.mma_async.sync.aligned.{shape}.{self.result}.{self.a}.{self.b or self.a} "
            f"{{{', '.join(d)}}}, {source}, %db, %q{tail};",
            "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
            *(f"st.global.u32 [%p4+{4 * k}], {one};" for k, one in enumerate(d)),
            "ret; }",
        ]
        return "\n".join(lines)


def places(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each element of a thread's results, shape (128, elements)."""
    thread, element = np.indices((128, columns // 2))
    row = thread // 32 * 16 + thread % 32 // 4 + element // 2 % 2 * 8
    return row, element // 4 * 8 + thread % 4 * 2 + element % 2


def registers_of(stored: np.ndarray) -> np.ndarray:
    """A (64 x depth) as the four registers of each thread, shape (128, 16) bytes."""
    per = 4 // stored.itemsize
    thread, register, element = np.indices((128, 4, per))
    row = thread // 32 * 16 + thread % 32 // 4 + register % 2 * 8
    column = thread % 4 * per + element + 4 * per * (register // 2)
    return np.ascontiguousarray(stored[row, column]).view(np.uint8).reshape(128, 16)


@dataclass(frozen=True)
class Problem:
    """A form with its numbers: what is launched, and what must come out."""

    launch: Launch
    expected: np.ndarray
    tolerance: float


def problem(form: Multiply) -> Problem:
    """Random operands; sums of products are compared with those in double precision."""
    a, a_values = draw(form.a, (64, form.depth))
    b, b_values = draw(form.b or form.a, (form.columns, form.depth))
    bits = a.itemsize * 8
    image_a, word_a = form.a_layout.image(a, 0, bits)
    image_b, word_b = form.b_layout.image(b, REGION, bits)
    before, before_values = draw(form.result, (64, form.columns))
    row, column = places(form.columns)
    threads = np.ascontiguousarray(before[row, column]).view(np.uint32)
    exact = form.signs[0] * form.signs[1] * (a_values @ b_values.T) + before_values * form.adds
    if form.result == "s32":
        exact = np.clip(exact, -(2.0**31), 2.0**31 - 1) if form.saturates else (exact + 2**31) % 2**32 - 2**31
    arguments = [np.concatenate([image_a, image_b]), np.array([word_a, word_b], np.uint64), threads, registers_of(a)]
    launch = Launch(form.name(), arguments, block=(128, 1, 1), shared=2 * REGION)
    return Problem(launch, exact, {"s32": 0.0, "f32": 2.0**-23, "f16": 2.0**-10}[form.result])


def forms() -> Iterator[Multiply]:
    """All types, in few shapes; all layouts, for fp16."""
    for kind in DEPTH:
        form = Multiply(32, kind, result=RESULTS.get(kind, "f32"))
        yield form
        yield replace(form, columns=256, a_layout=Layout(0), b_layout=Layout(32), adds=False)
        yield replace(form, columns=8, registers=True, b_layout=Layout(64))
    for swizzle in SWIZZLES:
        for transposed in ((True, False), (False, True), (True, True)):
            layouts = [Layout(swizzle, across) for across in transposed]
            yield Multiply(96, "bf16", a_layout=layouts[0], b_layout=layouts[1])
    yield Multiply(128, registers=True, b_layout=Layout(128, across=True))
    yield Multiply(192, result="f16", signs=(-1, 1))
    yield Multiply(24, signs=(1, -1))
    yield Multiply(16, signs=(-1, -1), adds=False)
    yield Multiply(64, "e4m3", "e5m2", result="f16")
    yield Multiply(40, "e5m2", "e4m3")
    yield Multiply(48, "u8", "s8", result="s32", saturates=True)
    yield Multiply(24, "s8", "u8", result="s32")


FORMS = list(dict.fromkeys(forms()))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, toolkit: object) -> dict[Multiply, tuple[np.ndarray, Problem]]:
    """Every form's results beside its problem; all of them run in one process."""
    module = tmp_path_factory.mktemp("wgmma") / "module"
    assemble(HEAD + DYNAMIC + "\n".join(form.kernel() for form in FORMS)).write(module)
    problems = [problem(form) for form in FORMS]
    done = run(ensure_core(default_cache_dir()).library, module, [one.launch for one in problems])
    assert done.error == 0, done.stderr
    return {form: (arrays[2], one) for form, arrays, one in zip(FORMS, done.arrays, problems, strict=True)}


def hopper_slack(form: Multiply) -> float:
    """How much further off Hopper may be: it cuts sums of fp8 products to 13 bits, others at the last of fp32."""
    return {**dict.fromkeys(("e4m3", "e5m2"), 2.0**11), **dict.fromkeys(("s8", "u8"), 1.0)}.get(form.a, 8.0)


def differs(form: Multiply, one: Problem, threads: np.ndarray, *, slack: float = 1) -> int:
    """How many results are further from the exact ones than rounding, `slack` times, explains."""
    row, column = places(form.columns)
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.result]
    got = threads.view(dtype).reshape(128, -1).astype(np.float64)
    expected = one.expected[row, column]
    tolerance = one.tolerance * slack
    bound = tolerance * max(1.0, float(np.abs(expected).max()))
    if form.result == "f16":
        expected = np.where(np.abs(expected) < 65520, expected, np.copysign(np.inf, expected))
    near = np.isclose(got, expected, rtol=tolerance, atol=bound) | (got == expected)
    return int((~near).sum())


@pytest.mark.nvcc
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_products(outcomes: dict[Multiply, tuple[np.ndarray, Problem]], form: Multiply) -> None:
    threads, one = outcomes[form]
    assert differs(form, one, threads) == 0
