"""Broken PTX, damaged modules and absurd launches end in a typed error: no crash, no hang."""

from __future__ import annotations

import random
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_machine import FAILED, HEAD, Launch, run, run_isolated

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import Module, NotEmulatable, assemble
from ptxemu.ptx.syntax import TOKEN

CORPUS = (
    HEAD
    + """
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.global .align 2 .s16 small[2] = {-1, 7};
.global .align 8 .u64 pointers[2] = {generic(table), helper};
.func (.param .b32 result) helper(.param .b32 value)
{
.reg .b32 %r<4>;
ld.param.b32 %r1, [value];
add.s32 %r2, %r1, 7;
st.param.b32 [result], %r2;
ret;
}
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
.local .align 16 .b8 depot[64];
.shared .align 16 .b8 tile[1024];
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<33>; .reg .f32 %f<9>; .reg .b64 %rd<17>; .reg .f64 %fd<4>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
ld.param.u32 %r1, [n];
cvta.to.global.u64 %rd3, %rd1;
mov.u32 %r2, %tid.x;
mad.wide.u32 %rd4, %r2, 4, %rd3;
mad.wide.u32 %rd5, %r2, 4, %rd2;
ld.global.nc.b32 %r3, [%rd4];
mov.u32 %r4, 0;
$loop:
add.s32 %r4, %r4, 1;
setp.lt.s32 %p1, %r4, %r1;
@%p1 bra $loop;
mov.u32 %r5, tile;
shl.b32 %r6, %r2, 2;
add.s32 %r7, %r5, %r6;
st.shared.b32 [%r7], %r3;
bar.sync 0;
ld.shared.b32 %r8, [%r7+4];
shfl.sync.bfly.b32 %r9|%p2, %r8, 1, 31, -1;
vote.sync.ballot.b32 %r10, %p2, -1;
mov.b64 %rd6, depot;
st.local.v2.b32 [%rd6+8], {%r9, %r10};
ld.local.b32 %r11, [%rd6+8];
cvt.rn.f32.s32 %f1, %r11;
fma.rn.f32 %f2, %f1, %f1, 0f3F800000;
cvt.rn.f16.f32 %h1, %f2;
cvt.f64.f32 %fd1, %f2;
{
.param .b32 a;
.param .b32 b;
st.param.b32 [a], %r11;
call (b), helper, (a);
ld.param.b32 %r12, [b];
}
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r13, %r14}, [%r5];
mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f3,%f4,%f5,%f6}, {%r13,%r14}, {%r13}, {%f1,%f1,%f2,%f2};
cp.async.ca.shared.global [%r7], [%rd4], 4;
cp.async.wait_all;
atom.global.add.u32 %r15, [%rd5], %r12;
lop3.b32 %r16, %r15, %r14, %r13, 0x96;
@!%p2 red.shared.max.s32 [%r7], %r16;
st.global.b32 [%rd5], %r16;
ret;
}
"""
)
LINES = CORPUS.split("\n")
NASTY = (
    "0", "-1", "4294967296", "99999999999999999999", "0x", "08", "[", "{", "}", ")", ";", ":", '"', "+", ",", "_", "<",
    "%r40", "%tid.x", "%tid.q", "!%p1", "@%p9", "$loop", "$nowhere", "tile", "depot", "helper", "k", "0f3F800000",
    ".reg .b32 %q<9999999999>;", ".local .b8 far[99999999999999];", ".shared .align 3 .b8 odd[8];", ".b128", ".v8",
    "ret;", "exit;", "trap;", "bra", "call", "ld.param.u64", "mov.b64 {%r1,%r2}", "wgmma.fence", "st.const.u32",
    "mbarrier.try_wait.shared.b64 %p1, [%r5], %rd1;", "add.s32 %r1, %r1;", "bar.sync 99;", "bar.sync 1, 64;",
    "ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];", "wmma.load.a.sync.aligned.row.m16n16k16.f16", "nanosleep.u32 5;",
)  # fmt: skip
_SETTINGS = settings(max_examples=400, deadline=2000, derandomize=True, suppress_health_check=list(HealthCheck))


def mutate(lines: list[str], chooser: random.Random) -> list[str]:
    """One change: a line lost or doubled, a token lost or replaced, a character replaced, the rest cut off."""
    if not lines:
        return LINES
    position = chooser.randrange(len(lines))
    tokens = TOKEN.findall(lines[position])
    kind = chooser.choice(("drop", "copy", "token", "token", "lose", "other", "character", "cut"))
    if kind == "drop":
        return lines[:position] + lines[position + 1 :]
    if kind == "copy":
        return [*lines[:position], lines[chooser.randrange(len(lines))], *lines[position:]]
    if kind == "cut":
        return lines[: position + 1]
    changed = lines[position]
    if kind == "character" and changed:
        at = chooser.randrange(len(changed))
        changed = changed[:at] + chr(chooser.randrange(32, 127)) + changed[at + 1 :]
    elif tokens:
        at = chooser.randrange(len(tokens))
        other = TOKEN.findall(chooser.choice(lines)) or [";"]
        tokens[at] = {"token": chooser.choice(NASTY), "lose": "", "other": chooser.choice(other)}.get(kind, ";")
        changed = " ".join(tokens)
    return [*lines[:position], changed, *lines[position + 1 :]]


def mutant(seed: int, times: int) -> str:
    chooser, lines = random.Random(seed), LINES
    for _ in range(times):
        lines = mutate(lines, chooser)
    return "\n".join(lines)


def assembled(text: str) -> Module | None:
    """The module, or None when the text was refused with a typed error; anything else propagates."""
    try:
        return assemble(text)
    except NotEmulatable as error:
        refused = error
    assert 0 <= refused.line <= text.count("\n") + 1
    assert refused.instruction
    assert refused.reason
    return None


@given(st.integers(0, 2**32), st.integers(1, 5))
@_SETTINGS
def test_broken_text_is_refused_or_assembled(seed, times):
    assembled(mutant(seed, times))


@given(st.text(alphabet=st.sampled_from(list("{}()[];:,.%@!$\"'<>=+- \n\t09xfabr")), max_size=300))
@_SETTINGS
def test_noise_is_refused_or_assembled(noise):
    assembled(noise)
    assembled(CORPUS[: CORPUS.index("mov.u32 %r4")] + noise)


@pytest.mark.parametrize(
    "text",
    ["{" * 5000, HEAD + ".visible .entry k()\n{\nmov.b64 %r, " + "{" * 5000, HEAD + ".entry k()\n" + "{" * 9**5],
    ids=["nothing", "operands", "scopes"],
)
def test_deep_nesting_is_refused(text):
    assert assembled(text) is None


@pytest.mark.parametrize("cut", range(0, len(CORPUS), 97))
def test_text_may_end_anywhere(cut):
    assembled(CORPUS[:cut])


@pytest.fixture(scope="module")
def library():
    return ensure_core(default_cache_dir()).library_dir / "libptxcudart.so"


LAUNCH = Launch("k", [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32), 5], block=(32, 1, 1))


def test_broken_kernels_that_assemble_run_or_fail(tmp_path, library):
    modules = []
    for seed in range(400):
        module = assembled(mutant(seed, 1 + seed % 3))
        if module is not None and any(one.name == "k" for one in module.kernels):
            modules.append(tmp_path / f"{seed}.module")
            module.write(modules[-1])
    codes = run_isolated(library, modules, LAUNCH)
    assert len(modules) > 40
    crashes = {module.name: code for module, code in zip(modules, codes, strict=True) if code not in (0, FAILED, 4)}
    assert not crashes
    assert codes.count(0) > 15
    assert codes.count(FAILED) > 3


def test_damaged_modules_are_refused(tmp_path, library):
    whole = tmp_path / "whole.module"
    assemble(CORPUS).write(whole)
    content, chooser = whole.read_bytes(), random.Random(5)
    damaged = []
    for number in range(60):
        changed = bytearray(content)
        if number % 2:
            changed = changed[: chooser.randrange(len(changed))]
        else:
            changed[chooser.randrange(len(changed))] ^= 1 << chooser.randrange(8)
        damaged.append(tmp_path / f"{number}.module")
        damaged[-1].write_bytes(bytes(changed))
    codes = run_isolated(library, [*damaged, tmp_path / "missing.module", whole], LAUNCH)
    assert codes == [4] * 61 + [0]


@pytest.mark.parametrize(
    "content", [b"", b"KBEMU4\0\0", b"KBEMU4\0\0" + b"\xff" * 64, b"KBEMU4\0\0" + bytes(200), bytes(range(256)) * 8]
)
def test_modules_with_a_good_checksum_but_no_sense_are_refused(tmp_path, library, content):
    module = tmp_path / "module"
    module.write_bytes(content + zlib.crc32(content).to_bytes(4, "little"))
    assert run_isolated(library, [module], LAUNCH)[0] in (4, FAILED)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        ({"grid": (0, 1, 1)}, 9),
        ({"grid": (1, 65536, 1)}, 9),
        ({"grid": (1, 1, 65536)}, 9),
        ({"grid": (0x80000000, 1, 1)}, 9),
        ({"block": (0, 1, 1)}, 9),
        ({"block": (1025, 1, 1)}, 9),
        ({"block": (1, 1, 65)}, 9),
        ({"block": (64, 64, 1)}, 9),
        ({"block": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)}, 9),
        ({"shared": 49 * 1024}, 1),
        ({"shared": 1 << 62}, 1),
        ({"kernel": "nothing"}, 98),
    ],
)
def test_absurd_launches_are_refused(tmp_path, library, shape, error):
    assemble(CORPUS).write(tmp_path / "module")
    assert run(library, tmp_path / "module", [Launch(**{**vars(LAUNCH), **shape})]).error == error


def test_a_kernel_without_an_end_is_stopped(tmp_path, library):
    endless = CORPUS.replace("@%p1 bra $loop;", "bra $loop;")
    assemble(endless).write(tmp_path / "module")
    outcome = run(library, tmp_path / "module", [LAUNCH], environment={"PTXEMU_LIMIT": "100000"})
    assert outcome.error == 702
    assert "more than 100000 warp instructions" in outcome.stderr


def test_recursion_without_an_end_is_a_stack_overflow(tmp_path, library):
    body = ".reg .b32 %r<4>;\n{ .param .b32 a; .param .b32 b; call (b), helper, (a); }\n"
    assemble(CORPUS.replace(".reg .b32 %r<4>;", body, 1)).write(tmp_path / "module")
    outcome = run(library, tmp_path / "module", [LAUNCH])
    assert outcome.error == 700
    assert "stack overflow" in outcome.stderr
