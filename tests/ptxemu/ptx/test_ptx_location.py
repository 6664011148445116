"""Source places of PTX lines."""

from __future__ import annotations

from ptxemu.ptx.location import source_location

PTX = """.visible .entry kernel()
{
\tret;
\t.loc\t1 7 5
\tmov.u32 %r1, %tid.x;
\t.loc\t2 30 1, function_name $L__info_string0, inlined_at 1 9 3
\ttex.2d.v4.f32.f32 {%f1}, [t, {%f2}];
}
\t.file\t1 "/tmp/build/candidate.cu"
\t.file\t2 "/usr/include/helper.cuh"
"""


def test_nearest_loc_before_the_line_names_the_place() -> None:
    assert source_location(PTX, 5) == "candidate.cu:7"
    assert source_location(PTX, 7) == "helper.cuh:30"


def test_line_before_any_loc_has_no_place() -> None:
    assert source_location(PTX, 3) is None


def test_text_without_line_information_has_no_place() -> None:
    assert source_location("ret;\n", 1) is None
