"""PTX texts that become one: symbols that are found, kept apart, or defined twice."""

from __future__ import annotations

import re

import pytest

from ptxemu.ptx.assembler import assemble
from ptxemu.ptx.joining import SymbolDefinedTwice, joined

HEAD = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "{file}"\n'
ONE = (
    HEAD.format(file="one.cu")
    + """
.extern .func (.param .b32 result) twice(.param .b32 x)
;
.extern .global .align 4 .u32 total;
.global .align 1 .b8 $str[4] = {111, 110, 101, 0};  // "};" in a comment
.weak .global .align 4 .u32 both = 1;
.extern .shared .align 4 .b8 pool[];
.visible .entry one(.param .u64 out)
.maxntid 32, 1, 1
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    .loc 1 7 3
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, $str;
    { .param .b32 a; st.param.b32 [a], 21; .param .b32 b; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
    atom.global.add.u32 %r2, [total], %r1;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
)
TWO = (
    HEAD.format(file="two.cu").replace("8.0", "8.3")
    + """
.visible .global .align 4 .u32 total = 5;
.global .align 1 .b8 $str[4] = {116, 119, 111, 0};
.weak .global .align 4 .u32 both = 2;
.extern .shared .align 16 .b8 pool[];
.visible .func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    .loc 1 9 3
    mov.u64 %rd2, $str;
    ld.param.u32 %r1, [x];
    add.u32 %r1, %r1, %r1;
    st.param.b32 [result], %r1;
    ret;
}
"""
)


@pytest.mark.parametrize("texts", [(ONE, TWO), (TWO, ONE)])
def test_symbols_are_found_and_literals_kept_apart(texts: tuple[str, str]) -> None:
    module = assemble(joined(texts))
    (kernel,) = module.kernels
    assert kernel.max_threads == 32
    literals = {bytes(one.initial) for one in module.variables if "$str" in one.name}
    assert literals == {b"one\0", b"two\0"}
    values = {one.name: int.from_bytes(one.initial, "little") for one in module.variables if "$str" not in one.name}
    assert values["total"] == 5
    assert values["both"] == (1 if texts[0] == ONE else 2)
    assert {(file, line) for file, line in module.sources if line} == {("one.cu", 7), ("two.cu", 9)}


def test_the_newest_version_and_the_largest_alignment_are_kept() -> None:
    text = joined([ONE, TWO])
    assert re.findall(r"\.version.*", text) == [".version 8.3"]
    assert re.findall(r"\.extern \.shared.*", text) == [".extern .shared .align 16 .b8 pool[];"]


def test_one_text_is_itself() -> None:
    assert joined([ONE]) == ONE


def test_what_is_defined_twice_is_named() -> None:
    with pytest.raises(SymbolDefinedTwice) as error:
        joined([TWO, TWO.replace("twice", "thrice")])
    assert error.value.symbol == "total"
