"""Lines of PTX, and the source places that they name."""

from __future__ import annotations

from pathlib import Path

from ptxemu.ptx.location import source_location
from ptxemu.ptx.syntax import parse
from ptxemu.ptx.text import read_ptx

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


def test_a_comment_ends_with_its_line_alone(tmp_path: Path) -> None:
    """ptxas ends neither lines nor comments at other control characters."""
    plain = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel()\n{\n\tret;\n}\n"
    path = tmp_path / "kernel.ptx"
    path.write_bytes(plain.replace("\tret;", "// \r bra nowhere; \x0b trap; \x0c } \x1e trap;\n\tret;").encode())
    (commented,), (bare,) = parse(read_ptx(path)).functions, parse(plain).functions
    assert len(commented.body) == len(bare.body)
