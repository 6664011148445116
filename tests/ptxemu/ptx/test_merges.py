"""Which shared loads are taken to be merged into wide ones."""

from __future__ import annotations

import pytest

from ptxemu.ptx.analysis.merges import merged_loads
from ptxemu.ptx.syntax import parse

HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a)
{
    .reg .pred %p<9>;
    .reg .f32 %f<99>;
    .reg .b32 %r<99>;
    .reg .b64 %rd<99>;
"""


def merged(*code: str) -> int:
    """How many loads another one stands for."""
    return sum(1 for width in widths(*code) if width == 0)


def widths(*code: str) -> list[int]:
    """Bytes of the loads that stand for others, and 0 for those."""
    return list(merged_loads(parse(HEAD + "\n".join(code) + "\nret;\n}\n").functions[0].body).values())


def load(offset: int, base: str = "%r1", kind: str = "f32") -> str:
    return f"ld.shared.{kind} %f{offset // 4 + 8}, [{base}+{offset}];"


def test_four_words_are_one_load() -> None:
    assert merged(*(load(offset) for offset in (0, 4, 8, 12))) == 3
    assert sorted(widths(*(load(offset) for offset in (12, 4, 0, 8, 16, 20)))) == [0, 0, 0, 0, 8, 16]


def test_two_words_are_one_load_where_aligned() -> None:
    assert merged(load(8), load(12)) == 1
    assert merged(load(4), load(8)) == 0


def test_doubles_are_merged_in_pairs() -> None:
    pair = [f"ld.shared.b64 %rd{k}, [%r1+{8 * k}];" for k in range(2)]
    assert merged(*pair) == 1


@pytest.mark.parametrize(
    "between",
    ["st.shared.f32 [%r2], %f1;", "bar.sync 0;", "add.s32 %r1, %r1, 4;", "$label:", "@%p1 bra $end;"],
    ids=["store", "barrier", "other address", "label", "branch"],
)
def test_what_lies_between_keeps_loads_apart(between: str) -> None:
    assert merged(load(0), load(4), between, load(8), load(12), "$end:") == 2
    assert merged(load(0), between, load(4), "$end:") == 0


def test_arithmetic_between_loads_does_not() -> None:
    assert merged(load(0), "add.f32 %f1, %f8, %f8;", load(4)) == 1


def test_statements_without_operands_are_passed_over() -> None:
    assert merged(load(0), "trap;", load(4)) == 1


def test_loads_through_other_registers_or_other_memory_stay() -> None:
    assert merged(load(0), load(4, base="%r2")) == 0
    assert merged("ld.global.f32 %f1, [%rd1];", "ld.global.f32 %f2, [%rd1+4];") == 0
    assert merged("ld.volatile.shared.f32 %f1, [%r1];", "ld.volatile.shared.f32 %f2, [%r1+4];") == 0
