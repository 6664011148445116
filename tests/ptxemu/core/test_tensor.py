"""Tensor-core instructions against NumPy, through the register layouts that PTX documents."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pytest
from ptx_machine import HEAD, Launch, run

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble

RNG = np.random.default_rng(7)
WIDTH = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "f64": 8, "f32": 4, "s32": 4}


def eighth(code: np.ndarray, mantissa: int, bias: int) -> np.ndarray:
    """fp8 patterns (finite ones) as numbers."""
    exponent, fraction = (code & 0x7F) >> mantissa, code & ((1 << mantissa) - 1)
    scale = np.exp2(np.maximum(exponent, 1).astype(float) - bias - mantissa)
    return np.where(code & 0x80, -1.0, 1.0) * (fraction + np.where(exponent > 0, 1 << mantissa, 0)) * scale


def draw(kind: str, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Random elements as stored patterns and as double-precision values."""
    if kind in ("s8", "u8", "s32"):
        dtype = np.dtype({"s8": "i1", "u8": "u1", "s32": "i4"}[kind])
        limits = np.iinfo(dtype)
        stored = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return stored, stored.astype(np.float64)
    if kind in ("e4m3", "e5m2"):
        stored = RNG.integers(0, 0x78, shape).astype(np.uint8) | (RNG.integers(0, 2, shape) << 7).astype(np.uint8)
        return stored, eighth(stored.astype(int), *((3, 7) if kind == "e4m3" else (2, 15)))
    values = RNG.standard_normal(shape)
    if kind == "f16":
        stored = values.astype(np.float16)
        return stored, stored.astype(np.float64)
    if kind == "f64":
        return values, values
    stored = values.astype(np.float32)
    if kind == "f32":
        return stored, stored.astype(np.float64)
    kept = stored.view(np.uint32) & np.uint32(0xFFFF0000 if kind == "bf16" else 0xFFFFE000)
    exact = kept.view(np.float32).astype(np.float64)
    return ((kept >> 16).astype(np.uint16) if kind == "bf16" else stored), exact


def layout(part: str, m: int, n: int, k: int, per: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of each element of a lane's fragment, in the order of its registers, one entry per lane."""
    lane = np.arange(32)
    group, member = lane // 4, lane % 4
    found = []
    if part == "c":
        for j in range(m * n // 32):
            found.append((group + 8 * (j // 2), member * 2 + j % 2))
        return found
    rows = m if part == "a" else n
    for register in range(rows * k // 32 // per):
        tall = part == "a" and m == 16
        for element in range(per):
            along = member * per + element + 4 * per * (register // 2 if tall else register)
            across = group + (8 * (register % 2) if tall else 0)
            found.append((across, along) if part == "a" else (along, across))
    return found


def registers_of(matrix: np.ndarray, part: str, shape: tuple[int, int, int]) -> np.ndarray:
    """A matrix as the bytes of each lane's registers, shape (32, bytes)."""
    per = max(1, 4 // matrix.itemsize)
    places = layout(part, *shape, per)
    lanes = np.stack([matrix[rows, columns] for rows, columns in places], axis=1)
    return np.ascontiguousarray(lanes).view(np.uint8).reshape(32, -1)


def matrix_of(lanes: np.ndarray, dtype: np.dtype, shape: tuple[int, int, int]) -> np.ndarray:
    """The result matrix from each lane's registers."""
    m, n, _ = shape
    values = np.ascontiguousarray(lanes).reshape(32, -1).view(dtype)
    result = np.zeros((m, n), dtype)
    for k, (rows, columns) in enumerate(layout("c", *shape, 1)):
        result[rows, columns] = values[:, k]
    return result


@dataclass(frozen=True)
class Multiply:
    """One `mma.sync` form."""

    shape: str
    kinds: tuple[str, str, str, str]
    saturate: bool = False

    @property
    def extents(self) -> tuple[int, int, int]:
        m, n, k = map(int, re.findall(r"\d+", self.shape))
        return m, n, k

    def kernel(self, name: str) -> str:
        """Loads a, b, c registers of each lane, multiplies, stores d."""
        double = self.kinds[1] == "f64"
        size, prefix = (8, "%l") if double else (4, "%r")
        m, n, k = self.extents
        counts = [m * n * WIDTH[self.kinds[0]], m * k * WIDTH[self.kinds[1]], k * n * WIDTH[self.kinds[2]]]
        counts = [one // 32 // size for one in (*counts, m * n * WIDTH[self.kinds[3]])]
        names = iter(f"{prefix}{j}" for j in range(64))
        groups = [[next(names) for _ in range(count)] for count in counts]
        lines = [".reg .b32 %i; .reg .b32 %r<64>; .reg .b64 %l<64>; .reg .b64 %p;", "mov.u32 %i, %tid.x;"]
        for group, parameter in zip(groups[1:], "abc", strict=True):
            lines += [f"ld.param.u64 %p, [{parameter}];", f"mad.wide.u32 %p, %i, {len(group) * size}, %p;"]
            lines += [f"ld.global.b{size * 8} {one}, [%p+{j * size}];" for j, one in enumerate(group)]
        sets = ", ".join("{" + ", ".join(group) + "}" for group in groups)
        saturate = ".satfinite" if self.saturate else ""
        lines.append(f"mma.sync.aligned.{self.shape}.row.col{saturate}.{'.'.join(self.kinds)} {sets};")
        lines += ["ld.param.u64 %p, [d];", f"mad.wide.u32 %p, %i, {len(groups[0]) * size}, %p;"]
        lines += [f"st.global.b{size * 8} [%p+{j * size}], {one};" for j, one in enumerate(groups[0])]
        parameters = ", ".join(f".param .u64 {one}" for one in "abcd")
        return f".visible .entry {name}({parameters})\n{{\n" + "\n".join(lines) + "\nret;\n}\n"


def forms() -> list[Multiply]:
    found = []
    for kind, shape in itertools.product(("f16", "bf16"), ("m16n8k8", "m16n8k16")):
        found.append(Multiply(shape, ("f32", kind, kind, "f32")))
    found += [Multiply(shape, ("f16", "f16", "f16", "f16")) for shape in ("m16n8k8", "m16n8k16")]
    found += [Multiply(shape, ("f32", "tf32", "tf32", "f32")) for shape in ("m16n8k4", "m16n8k8")]
    for a, b in itertools.product(("s8", "u8"), repeat=2):
        for shape in ("m8n8k16", "m16n8k16", "m16n8k32"):
            found += [Multiply(shape, ("s32", a, b, "s32"), saturate) for saturate in (False, True)]
    found += [Multiply("m16n8k32", ("f32", a, b, "f32")) for a, b in itertools.product(("e4m3", "e5m2"), repeat=2)]
    found += [Multiply(shape, ("f64",) * 4) for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")]
    return found


FORMS = forms()


def launch_all(kernels: list[str], launches: list[Launch], tmp_path_factory) -> list[list[np.ndarray]]:
    module = tmp_path_factory.mktemp("tensor") / "module"
    assemble(HEAD + "".join(kernels)).write(module)
    outcome = run(ensure_core(default_cache_dir()).library_dir / "libptxcudart.so", module, launches)
    assert outcome.error == 0, outcome.stderr
    return outcome.arrays


def expected_product(form: Multiply, values: list[np.ndarray]) -> np.ndarray:
    a, b, c = values
    exact = a @ b + c
    if form.kinds[0] == "s32":
        limits = np.iinfo(np.int32)
        wrapped = exact.astype(np.int64).astype(np.int32)
        return np.clip(exact, limits.min, limits.max).astype(np.int32) if form.saturate else wrapped
    return exact


@pytest.fixture(scope="module")
def products(tmp_path_factory) -> list[tuple[np.ndarray, np.ndarray]]:
    """Result and expectation of every form."""
    kernels, launches, expected = [], [], []
    for k, form in enumerate(FORMS):
        m, n, depth = form.extents
        drawn = [
            draw(kind, shape) for kind, shape in zip(form.kinds[1:], ((m, depth), (depth, n), (m, n)), strict=True)
        ]
        kernels.append(form.kernel(f"k{k}"))
        stored = [registers_of(one, part, form.extents) for (one, _), part in zip(drawn, "abc", strict=True)]
        out = np.zeros((32, m * n * WIDTH[form.kinds[0]] // 32), np.uint8)
        launches.append(Launch(f"k{k}", [*stored, out]))
        expected.append(expected_product(form, [value for _, value in drawn]))
    arrays = launch_all(kernels, launches, tmp_path_factory)
    dtypes = {"f32": np.float32, "f16": np.float16, "s32": np.int32, "f64": np.float64}
    results = [
        matrix_of(after[3], np.dtype(dtypes[form.kinds[0]]), form.extents)
        for form, after in zip(FORMS, arrays, strict=True)
    ]
    return list(zip(results, expected, strict=True))


@pytest.mark.parametrize("number", range(len(FORMS)), ids=lambda k: ".".join((FORMS[k].shape, *FORMS[k].kinds)))
def test_multiply(products, number):
    result, expected = products[number]
    if result.dtype == np.int32:
        np.testing.assert_array_equal(result, expected)
    elif result.dtype == np.float64:
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)
    else:
        # Summed exactly and rounded once: NumPy's double sum may round the other way at a tie.
        np.testing.assert_allclose(
            result.astype(np.float64), expected.astype(result.dtype).astype(np.float64), rtol=np.finfo(result.dtype).eps
        )


_SHAPES = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), ("m16n16k16", "m32n8k16", "m8n32k16")),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
}
_ACCUMULATOR = {"f16": "f32", "bf16": "f32", "tf32": "f32", "s8": "s32", "u8": "s32", "f64": "f64"}
_COUNTS = {"f16": {"a": 8, "b": 8}, "f64": {"a": 1, "b": 1}}


def wmma_kernel(name: str, kind: str, shape: str, layouts: tuple[str, str, str], result: str) -> str:
    """Loads three matrices, multiplies, stores the result; strides are the parameters after the pointers."""
    m, n, k = map(int, re.findall(r"\d+", shape))
    double = kind == "f64"
    prefix, size = ("%l", 8) if double else ("%r", 4)
    counts = dict(_COUNTS.get(kind, {"a": m * k * WIDTH[kind] // 128, "b": k * n * WIDTH[kind] // 128}))
    counts["c"] = counts["d"] = max(1, m * n * WIDTH[result] // 32 // size)
    names = iter(f"{prefix}{j}" for j in range(64))
    group = {part: "{" + ", ".join(next(names) for _ in range(counts[part])) + "}" for part in "abcd"}
    lines = [".reg .b32 %r<64>; .reg .b32 %s<4>; .reg .b64 %l<64>; .reg .b64 %p<4>;"]
    for j, part in enumerate("abcd"):
        lines += [f"ld.param.u64 %p{j}, [{part}];", f"ld.param.u32 %s{j}, [s{part}];"]
    for j, part in enumerate("abc"):
        space = ".global" if j % 2 else ""
        of = result if part == "c" else kind
        text = f"wmma.load.{part}.sync.aligned.{layouts[j]}.{shape}{space}.{of}"
        lines.append(f"{text} {group[part]}, [%p{j}], %s{j};")
    kinds = f"{result}.{result}" if kind == "f16" else f"{result}.{kind}.{kind}.{result}{'.rn' if double else ''}"
    operands = ", ".join(group[part] for part in "dabc")
    lines.append(f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{kinds} {operands};")
    lines.append(f"wmma.store.d.sync.aligned.{layouts[2]}.{shape}.global.{result} [%p3], {group['d']}, %s3;")
    parameters = ", ".join([f".param .u64 {one}" for one in "abcd"] + [f".param .u32 s{one}" for one in "abcd"])
    return f".visible .entry {name}({parameters})\n{{\n" + "\n".join(lines) + "\nret;\n}\n"


WMMA = [
    (kind, shape, layouts, result)
    for kind, shapes in _SHAPES.items()
    for shape in shapes
    for layouts in itertools.product(("row", "col"), repeat=3)
    for result in ((_ACCUMULATOR[kind], "f16") if kind == "f16" else (_ACCUMULATOR[kind],))
]


def in_memory(matrix: np.ndarray, order: str) -> tuple[np.ndarray, int]:
    """A matrix inside a larger one, and the stride between its rows or columns."""
    lines = matrix if order == "row" else matrix.T
    padded = np.zeros((lines.shape[0], lines.shape[1] + 16), matrix.dtype)
    padded[:, : lines.shape[1]] = lines
    return padded, padded.shape[1]


@pytest.fixture(scope="module")
def fragments(tmp_path_factory) -> list[tuple[np.ndarray, np.ndarray]]:
    """Result and expectation of every wmma case."""
    kernels, launches, expected = [], [], []
    for number, (kind, shape, layouts, result) in enumerate(WMMA):
        m, n, k = map(int, re.findall(r"\d+", shape))
        drawn = [draw(one, size) for one, size in ((kind, (m, k)), (kind, (k, n)), (result, (m, n)))]
        placed = [in_memory(stored, order) for (stored, _), order in zip(drawn, layouts, strict=True)]
        out, stride = in_memory(np.zeros((m, n), drawn[2][0].dtype), layouts[2])
        kernels.append(wmma_kernel(f"k{number}", kind, shape, layouts, result))
        strides = [one for _, one in placed]
        launches.append(Launch(f"k{number}", [*(memory for memory, _ in placed), out, *strides, stride]))
        exact = drawn[0][1] @ drawn[1][1] + drawn[2][1]
        expected.append(exact.astype(np.int64).astype(np.int32) if result == "s32" else exact)
    arrays = launch_all(kernels, launches, tmp_path_factory)
    results = []
    for (_, shape, layouts, _), after in zip(WMMA, arrays, strict=True):
        m, n, _ = map(int, re.findall(r"\d+", shape))
        lines = after[3][:, : n if layouts[2] == "row" else m]
        results.append(lines if layouts[2] == "row" else lines.T)
    return list(zip(results, expected, strict=True))


@pytest.mark.parametrize("number", range(len(WMMA)), ids=lambda k: ".".join((*WMMA[k][:2], *WMMA[k][2], WMMA[k][3])))
def test_wmma(fragments, number):
    result, expected = fragments[number]
    if result.dtype == np.int32:
        np.testing.assert_array_equal(result, expected)
    else:
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=2 * np.finfo(result.dtype).eps, atol=1e-12)


def test_stored_and_transposed_matrices(tmp_path_factory):
    """stmatrix is the inverse of ldmatrix, with and without transposition; movmatrix transposes between lanes."""
    body = """
.reg .b32 %r<32>; .reg .b64 %p<4>; .shared .align 16 .b8 tile[1024];
mov.u32 %r0, %tid.x; mov.u32 %r1, tile; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2;
ld.param.u64 %p0, [in]; mad.wide.u32 %p1, %r0, 16, %p0;
ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%p1];
stmatrix.sync.aligned.m8n8.x4.TRANS.shared.b16 [%r3], {%r4, %r5, %r6, %r7};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r8, %r9, %r10, %r11}, [%r3];
movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r4;
ld.param.u64 %p2, [out]; mad.wide.u32 %p3, %r0, 20, %p2;
st.global.b32 [%p3], %r8; st.global.b32 [%p3+4], %r9; st.global.b32 [%p3+8], %r10; st.global.b32 [%p3+12], %r11;
st.global.b32 [%p3+16], %r12;
ret;
"""
    kernels = [
        f".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{{body.replace('.TRANS', trans)}}}\n"
        for name, trans in (("plain", ""), ("turned", ".trans"))
    ]
    data = RNG.integers(0, 1 << 32, (32, 4), np.uint32)
    launches = [Launch(name, [data, np.zeros((32, 5), np.uint32)]) for name in ("plain", "turned")]
    (_, plain), (_, turned) = launch_all(kernels, launches, tmp_path_factory)
    np.testing.assert_array_equal(plain[:, :4], data)
    matrices = data.T.copy().view(np.uint16).reshape(4, 8, 8)
    np.testing.assert_array_equal(turned[:, :4].T.copy().view(np.uint16).reshape(4, 8, 8), matrices.transpose(0, 2, 1))
    np.testing.assert_array_equal(plain[:, 4].copy().view(np.uint16).reshape(8, 8), matrices[0].T)
