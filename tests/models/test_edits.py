"""Edits of a known file apply exactly, once, in any order; what does not apply says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.models.edits import Edit, InapplicableEdits, apply_edits, parse_candidate, parse_edits
from kernelblaster.models.replies import UnusableReply

LAUNCHER = 'extern "C" void launch_gpu_implementation(void* output) {\n}\n'
BASE = f"#define BM 64\nint a;\nint b;  \nint a;\n{LAUNCHER}"


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


@given(st.data())
def test_edits_of_distinct_lines_give_the_file_they_describe_in_any_order(data: st.DataObject) -> None:
    lines = [f"line {number};" for number in range(data.draw(st.integers(1, 12)))]
    chosen = data.draw(st.lists(st.sampled_from(lines), unique=True, min_size=1))
    written = {line: data.draw(st.lists(st.sampled_from(["x", "", "    y;"]), max_size=3)) for line in chosen}
    edits = [Edit((line,), tuple(written[line])) for line in data.draw(st.permutations(chosen))]
    expected = [new for line in lines for new in written.get(line, [line])]
    assert apply_edits("\n".join(lines) + "\n", edits) == "\n".join(expected) + "\n"


@given(st.text(alphabet="<=>SEARCHREPLACE \nab"))
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    try:
        outside, edits = parse_edits(text)
    except InapplicableEdits:
        assert "SEARCH" in text
    else:
        assert edits or outside == text


def test_a_reply_of_edits_is_the_edited_file_and_tells_what_it_wrote() -> None:
    reply = (
        "EXPECTED_SPEEDUP: 1.3\n```\n"
        + block("#define BM 64", "#define BM 128\nint c;")
        + "```\n"
        + block("int b;", "")
    )
    found = parse_candidate(reply, BASE)
    assert found.source == BASE.replace("#define BM 64", "#define BM 128\nint c;").replace("int b;  ", "")
    assert (found.expected_speedup, found.edits) == (1.3, 2)
    assert 0 < found.written < len(found.source)


def test_a_whole_file_comes_before_edits_and_a_snippet_does_not() -> None:
    edits = block("int b;", "int d;")
    whole = parse_candidate(f"{edits}```cuda\n{LAUNCHER}```\n", BASE)
    assert (whole.source, whole.edits) == (LAUNCHER, 0)
    assert parse_candidate(f"```cuda\nint snippet;\n```\n{edits}", BASE).edits == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (block("int a;", "int c;"), "lines 2, 4"),
        (block("int a;\nint z;", "int c;"), "`int z;`"),
        (block("", "int c;"), "searches for nothing"),
        (block("int a;\nint b;", "x") + block("int b;", "y"), "same lines"),
        ("<<<<<<< SEARCH\nint b;\n=======\nint c;\n", "cut off"),
        ("<<<<<<< SEARCH\nint b;\n" + block("int b;", "int c;"), "not closed"),
    ],
)
def test_what_does_not_apply_says_which_edit_and_why(reply: str, reason: str) -> None:
    with pytest.raises(InapplicableEdits, match=r"edits? \d") as misfit:
        parse_candidate(reply, BASE)
    assert reason in misfit.value.reason


def test_without_a_known_file_edits_are_no_candidate() -> None:
    with pytest.raises(UnusableReply) as refused:
        parse_candidate(block("int b;", "int c;"), None)
    assert not isinstance(refused.value, InapplicableEdits)
