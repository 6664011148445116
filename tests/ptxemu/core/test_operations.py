"""Every scalar instruction of the table against exact arithmetic, on edge values and random ones."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import zlib
from fractions import Fraction

import numpy as np
import pytest
from conversion_forms import conversion_forms
from exact import FORMATS
from operation_forms import forms
from operation_table import Case, bits_of, cases, signed
from ptx_machine import HEAD, Launch, run

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import NotEmulatable, assemble

LANES = 256
_REGISTER = {16: "%h", 32: "%r", 64: "%l"}
_DTYPE = {16: np.uint16, 32: np.uint32, 64: np.uint64}
_EDGES = {
    "f16": (0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00),
    "bf16": (0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0xBF80, 0x3EAB, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0),
    "f32": (0, 1 << 31, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3EAAAAAB, 0x4B7FFFFF, 0x4F000000,
            0xCF000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x477FF000, 0x3F000000),
    "f64": (0, 1 << 63, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
            0x3FD5555555555555, 0x41DFFFFFFFE00000, 0xC3E0000000000000, 0x43F0000000000000, 0x7FEFFFFFFFFFFFFF,
            0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x36A0000000000000, 0x47EFFFFFF0000000),
}  # fmt: skip


def integer_edges(bits: int) -> list[int]:
    half = 1 << bits - 1
    around = (0, 1, 2, 7, 31, 32, 33, 255, 256, half - 1, half, half + 1, 2 * half - 1)
    return sorted({one % (1 << bits) for one in around})


def draw(kind: str, chooser: random.Random) -> int:
    """Bits of a random operand; floats of moderate size half of the time, any pattern otherwise."""
    bits = bits_of(kind)
    if kind not in FORMATS or chooser.random() < 0.5:
        return chooser.getrandbits(chooser.choice((bits, bits, 5)))
    return FORMATS[kind].encode(Fraction(chooser.gauss(0, 4)), "rn")


def operands(case: Case) -> list[tuple[int, ...]]:
    """One tuple of bit patterns per lane: all pairs of edges as far as they fit, the rest random."""
    chooser = random.Random(zlib.crc32(case.text.encode()))
    edges = [_EDGES.get(kind) or integer_edges(bits_of(kind)) for kind in case.sources]
    crossed = list(itertools.product(*edges))
    chooser.shuffle(crossed)
    found = crossed[: LANES * 2 // 3]
    while len(found) < LANES:
        found.append(tuple(draw(kind, chooser) for kind in case.sources))
    return found


def kernel(number: int, case: Case) -> str:
    registers = ".reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %l<8>; .reg .b64 %p<8>; .reg .pred %t; .reg .b32 %i;"
    names = [_REGISTER[bits_of(kind)] + str(k) for k, kind in enumerate(case.sources)]
    lines = ["mov.u32 %i, %tid.x;"]
    for k, (kind, name) in enumerate(zip(case.sources, names, strict=True)):
        size = bits_of(kind)
        lines += [f"ld.param.u64 %p{k}, [in{k}];", f"mad.wide.u32 %p{k}, %i, {size // 8}, %p{k};"]
        lines.append(f"ld.global.b{size} {name}, [%p{k}];")
    size = 32 if case.result == "pred" else bits_of(case.result)
    target = "%t" if case.result == "pred" else _REGISTER[size] + "7"
    lines.append(case.text.format(d=target, **dict(zip("abc", names, strict=False))))
    if case.result == "pred":
        lines.append("selp.b32 %r7, 1, 0, %t;")
    lines += ["ld.param.u64 %p7, [out];", f"mad.wide.u32 %p7, %i, {size // 8}, %p7;"]
    lines.append(f"st.global.b{size} [%p7], {_REGISTER[size]}7;")
    parameters = ", ".join(f".param .u64 in{k}" for k in range(len(names)))
    body = "\n".join(lines)
    return f".visible .entry case{number}({parameters}, .param .u64 out)\n{{\n{registers}\n{body}\nret;\n}}\n"


def number_of(kind: str, pattern: int, *, flush: bool):
    if kind in FORMATS:
        value = FORMATS[kind].decode(pattern)
        tiny = Fraction(2) ** (1 - FORMATS[kind].largest_exponent)
        if flush and not isinstance(value, float) and abs(value) < tiny:
            return math.copysign(0.0, value)
        return value
    return signed(pattern, bits_of(kind)) if kind[0] == "s" else pattern


def expected_bits(case: Case, lane: tuple[int, ...]) -> int | None:
    """The pattern this lane must give: -1 for any NaN, None where PTX leaves it open."""
    values = [number_of(kind, one, flush=case.flush) for kind, one in zip(case.sources, lane, strict=True)]
    result = case.expected(*values)
    if result is None:
        return None
    if case.result == "pred":
        return int(bool(result))
    if case.result in FORMATS:
        form = FORMATS[case.result]
        if isinstance(result, float) and math.isfinite(result) and result:
            result = Fraction(result)
        code = form.encode(result, case.mode)
        fraction_bits = form.precision - 1
        if case.flush and code >= 0 and code >> fraction_bits & (2 * form.largest_exponent + 1) == 0:
            code &= 1 << (form.bits - 1)
        return code
    return int(result) % (1 << bits_of(case.result))


def is_nan(form, code: int) -> bool:
    infinity = (2 * form.largest_exponent + 1) << (form.precision - 1)
    return code & ((1 << (form.bits - 1)) - 1) > infinity


def agrees(case: Case, got: int, wanted: int | None) -> bool:
    if wanted is None:
        return True
    if case.result not in FORMATS:
        return got == wanted
    form = FORMATS[case.result]
    if wanted < 0 or is_nan(form, got):
        return wanted < 0 and is_nan(form, got)
    ordered = [-(one & ((1 << form.bits - 1) - 1)) if one >> form.bits - 1 else one for one in (got, wanted)]
    return got == wanted or (case.ulp > 0 and abs(ordered[0] - ordered[1]) <= case.ulp)


def agrees_on_gpu(case: Case, lane: tuple[int, ...], got: int) -> bool:
    """Approximations may be as far off as the PTX ISA says."""
    wanted = expected_bits(case, lane)
    if agrees(case, got, wanted):
        return True
    if case.near is None or wanted is None:
        return False
    operand = number_of(case.sources[0], lane[0], flush=case.flush)
    exact = math.nan if wanted < 0 else FORMATS[case.result].decode(wanted)
    return case.near(float(operand), float(FORMATS[case.result].decode(got)), float(exact))


def as_assembled(case: Case, lane: tuple[int, ...], got: int) -> bool:
    """Whether a GPU gives what ptxas makes of the form, known not to be what the PTX ISA says."""
    values = [number_of(kind, one, flush=case.flush) for kind, one in zip(case.sources, lane, strict=True)]
    return case.assembled is not None and got == case.assembled(*values)


TABLE = cases()
CASES = [*TABLE, *forms(), *conversion_forms()]


def launch_of(number: int, case: Case) -> Launch:
    """The case's kernel on its operands; the results are the last array."""
    columns = zip(*operands(case), strict=True)
    inputs = [np.array(column, _DTYPE[bits_of(kind)]) for column, kind in zip(columns, case.sources, strict=True)]
    out = np.zeros(LANES, _DTYPE[32 if case.result == "pred" else bits_of(case.result)])
    return Launch(f"case{number}", [*inputs, out], block=(LANES, 1, 1))


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> list[np.ndarray]:
    """The patterns that every case gave, all run in one process."""
    module = tmp_path_factory.mktemp("operations") / "module"
    assemble(HEAD + "".join(kernel(k, case) for k, case in enumerate(CASES))).write(module)
    outcome = run(ensure_core(default_cache_dir()).library, module, [launch_of(*one) for one in enumerate(CASES)])
    assert outcome.error == 0, outcome.stderr
    return [arrays[-1] for arrays in outcome.arrays]


def test_the_table_is_large_enough():
    assert len(CASES) > 500
    assert len({case.text for case in CASES}) == len(CASES)


@pytest.mark.nvcc
def test_the_toolkit_assembles_every_form(tmp_path, toolkit):
    text = tmp_path / "forms.ptx"
    text.write_text(HEAD + "".join(kernel(k, case) for k, case in enumerate(CASES)))
    command = [str(toolkit.nvcc), "-cubin", "-arch=sm_90a", str(text), "-o", str(tmp_path / "forms.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["cvt.rni.s8.bf16 %h1, %h2;", "cvt.rn.bf16.u8 %h1, %h2;"])
def test_forms_that_ptx_lacks_are_refused(text):
    with pytest.raises(NotEmulatable, match="PTX has no conversion"):
        assemble(f"{HEAD}.visible .entry one()\n{{ .reg .b16 %h<3>; {text} ret; }}")


@pytest.mark.parametrize(
    ("text", "lane", "near", "far"),
    [
        ("ex2.approx.f32 {d}, {a};", 0.5, 2**0.5 + 2e-7, 2**0.5 + 4e-7),
        ("lg2.approx.f32 {d}, {a};", 1.5, math.log2(1.5) + 2e-7, math.log2(1.5) + 3e-7),
        ("sin.approx.f32 {d}, {a};", 3.0, math.sin(3) + 6e-7, math.sin(3) + 8e-7),
        ("tanh.approx.f32 {d}, {a};", 1.0, math.tanh(1) * 1.0004, math.tanh(1) * 1.0006),
    ],
)
def test_a_gpu_may_approximate_as_the_isa_says(text, lane, near, far):
    (case,) = (one for one in CASES if one.text == text)
    codes = [FORMATS["f32"].encode(Fraction(one), "rn") for one in (lane, near, far)]
    assert agrees_on_gpu(case, (codes[0],), codes[1])
    assert not agrees_on_gpu(case, (codes[0],), codes[2])


@pytest.mark.parametrize(
    "number",
    [*range(len(TABLE)), *(pytest.param(k, marks=pytest.mark.slow) for k in range(len(TABLE), len(CASES)))],
    ids=lambda k: CASES[k].text.split(" ")[0].strip("{"),
)
def test_operation(results, number):
    case = CASES[number]
    for lane, got in zip(operands(case), results[number], strict=True):
        wanted = expected_bits(case, lane)
        shown = ", ".join(f"{one:#x}" for one in lane)
        assert agrees(case, int(got), wanted), f"{case.text} of {shown}: {int(got):#x}, expected {wanted:#x}"
