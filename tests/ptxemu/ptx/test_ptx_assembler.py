from __future__ import annotations

import time
import timeit

import pytest

from ptxemu.ptx.assembler import NotEmulatable, assemble
from ptxemu.ptx.module import VariableKind
from ptxemu.ptx.operations import signatures
from ptxemu.ptx.syntax import parse

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def kernel(body: str, registers: str = ".reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .pred %p<9>;") -> str:
    return f"{HEAD}.visible .entry k(.param .u64 a, .param .u32 n)\n{{\n{registers}\n{body}\nret;\n}}\n"


def operations(text: str) -> list[str]:
    return [one.operation for one in assemble(text).kernels[0].code]


def test_parameters_are_laid_out_as_the_host_passes_them():
    text = kernel("").replace(".param .u32 n", ".param .u32 n, .param .align 8 .b8 s[24], .param .u8 c")
    assert assemble(text).kernels[0].parameters == [(0, 8), (8, 4), (16, 24), (40, 1)]


def test_inner_scopes_have_registers_of_their_own():
    body = "mov.b32 %r1, 1;\n{.reg.b32 x; mov.b32 x, %r1; }\n{.reg .b32 x; mov.b32 x, 2; mov.b32 %r2, x; }"
    code = assemble(kernel(body)).kernels[0].code
    assert code[1].operands[0] != code[2].operands[0]
    assert code[2].operands[0] == code[3].operands[1]


def test_labels_become_positions():
    code = assemble(kernel("bra $L1;\nmov.b32 %r1, 1;\n$L1:\nmov.b32 %r2, 2;")).kernels[0].code
    assert (code[0].operation, code[0].immediate) == ("bra", 2)


def test_variables_keep_their_initial_bytes():
    text = (
        HEAD
        + ".global .align 4 .f32 v[2] = {0f3F800000, 0fC0000000};\n.const .align 1 .b8 s[3] = {65, 66};\n"
        + kernel("")[len(HEAD) :]
    )
    first, second = assemble(text).variables
    assert first.initial == bytes.fromhex("0000803f000000c0")
    assert (second.initial, second.size, second.kind) == (b"AB", 3, VariableKind.CONSTANT)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tcgen05.wait::ld.sync.aligned;", "tensor memory"),
        ("add.u32 %r1, %r2;", "1 sources"),
        ("add.s32 %r1, %rd1, 1;", "64 bits where 32"),
        ("tex.1d.v4.f32.s32 %r1, %r2;", "a handle and coordinates"),
        ("tex.2dms.v4.f32.s32 {%f1, %f1, %f1, %f1}, [%rd1, {%r2, %r2, %r2, %r2}];", "a texture of this shape"),
        ("txq.width.b32 %r1, [%rd1];", "textures"),
        ("ld.global.f32 %f1, [%rd1, {%r1, %r2}];", "an address is expected"),
        ("cp.async.bulk.tensor.2d.global.shared::cta [%rd1, {%r2, %r3}], [%r1];", "this form"),
        ("call cudaLaunchDeviceV2_ptsz;", "kernels launched by kernels"),
        ("frobnicate.u32 %r1, %r2;", "no such operation"),
        ("mov.u32 %r1, %unknown_register;", "special register"),
        ("mov.u32 %r1, nowhere;", "unknown operand"),
        ("bra $nowhere;", "unknown label"),
        ("ld.global.v4.f32 {%f1, %f2}, [%rd1];", "vector"),
        ("cp.async.bulk.shared::cluster.shared::cta [%r1], [%r2], %r3, [%r4];", "this form"),
        ("cp.async.bulk.global.shared::cta [%rd1], [%r2], %r3;", "of this form"),
        ("cp.async.bulk.wait_group;", "unexpected form"),
        ("mov.b32 %r1", "expected"),
    ],
)
def test_what_cannot_be_emulated_is_named_with_its_line(line, reason):
    with pytest.raises(NotEmulatable) as caught:
        assemble(kernel(line))
    assert caught.value.line >= 7 or reason == "expected"
    assert reason in caught.value.reason or reason == "expected"


@pytest.mark.parametrize("cut", range(20, 290, 13))
def test_truncated_text_never_crashes(cut):
    text = kernel("add.s32 %r1, %r2, 3;\nld.global.u32 %r3, [%rd1+4];")
    try:
        assemble(text[:cut])
    except NotEmulatable as error:
        reason = error.reason
    else:
        reason = "nothing was cut"
    assert reason


def test_sign_agnostic_forms_share_an_operation():
    body = "add.s32 %r1, %r2, 3;\nadd.u32 %r1, %r2, -3;\nmul.lo.u32 %r1, %r1, %r2;\n"
    body += "min.s32 %r1, %r1, %r2;\nadd.rn.f32 %f1, %f1, %f2;"
    assert operations(kernel(body))[:5] == ["add_b32", "add_b32", "mul_lo_b32", "min_s32", "add_f32"]


def test_every_family_of_definitions_is_expanded():
    known = signatures()
    expected = (
        "fma_rn_f32",
        "add_rz_f64",
        "fma_rn_bf16x2",
        "setp_ltu_f16",
        "cvt_rzi_s64_f32",
        "cvt_rni_f32_f32",
        "setp_ge_u64",
    )
    assert set(expected) <= set(known)
    assert known["shl_b64"] == (64, 64, 32)


def test_assembling_is_fast():
    text = kernel("mad.lo.s32 %r1, %r2, %r3, %r4;\nld.global.f32 %f1, [%rd1+16];\n" * 2000)
    # The best of a few: what else a machine does makes each slower, and none faster.
    assert min(timeit.repeat(lambda: assemble(text), timer=time.process_time, number=1, repeat=5)) < 4 * 0.05 * 3


def _calls(count: int) -> str:
    """As many kernels, each of which calls a function of as many instructions."""
    body = "add.u32 %r1, %r1, %r1;\n" * count
    function = f".func f()\n{{\n.reg .b32 %r<9>;\n{body}ret;\n}}\n"
    return HEAD + function + "".join(kernel("call f;").removeprefix(HEAD).replace("k(", f"k{n}(") for n in range(count))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (kernel("", ".reg .b32 %a<200000>;\n.reg .b32 %b<200000>;"), "registers"),
        (kernel("{" * 5000 + "}" * 5000), "scopes"),
        (_calls(1000), "instructions of all kernels"),
    ],
    ids=["registers", "scopes", "calls"],
)
def test_a_short_text_that_stands_for_much_is_refused_at_once(text, reason):
    began = time.process_time()
    with pytest.raises(NotEmulatable, match=reason):
        assemble(text)
    assert time.process_time() - began < 5


def test_a_line_remembers_some_of_the_calls_that_it_was_inlined_through():
    places = "".join(f".loc 1 {n + 2} 1, function_name $f, inlined_at 1 {n + 1} 1\n" for n in range(5000))
    body = parse(kernel(places + "mov.b32 %r1, 1;")).functions[0].body
    assert body[0].source[0] == ("1", 5001)
    assert len(body[0].source) < 1000
