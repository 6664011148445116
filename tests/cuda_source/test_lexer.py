"""The one reader of C++ text, against its own laws and against GCC's preprocessor."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernelblaster.cuda_source.lexer import (
    TokenKind,
    blank_comments,
    blank_comments_and_literals,
    directives,
    logical_lines,
    significant_tokens,
    tokens,
)

FRAGMENTS = (
    *('"', "'", "\\", "\n", "/", "*", "//", "/*", "*/", "#", "R", "(", ")", " ", "1", "name", "é"),
    *('R"x(', ')x"', 'u8R"(', ')"', "\\\n", "\\ \n", "\\\r\n", "\r\n", "\r", "L'", "'1", "#define X ", ".e+", "%:"),
)
MIXES = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=20).map("".join), st.text(max_size=40))


@given(MIXES)
@example("a\\/**/\n#/**/b")
@example("/\\/**/\n/ hidden")
def test_blanking_keeps_positions_and_lines_and_is_idempotent(text: str) -> None:
    for blank in (blank_comments, blank_comments_and_literals):
        once = blank(text)
        assert len(once) == len(text)
        assert [at for at, one in enumerate(once) if one == "\n"] == [at for at, one in enumerate(text) if one == "\n"]
        assert blank(once) == once


@given(MIXES)
def test_tokens_make_up_the_text(text: str) -> None:
    found = list(tokens(text))
    assert "".join(text[token.start : token.end] for token in found) == text
    for token in found:
        assert token.start <= token.inner_start <= token.inner_end <= token.end
        if token.kind not in (TokenKind.SPLICE, TokenKind.RAW_STRING):
            assert "\\\n" not in token.spelling or "\\\\\n" in text.replace("\r", "").replace(" ", "")


@given(MIXES)
def test_code_stays_where_it_is(text: str) -> None:
    blanked = blank_comments_and_literals(text)
    for token in tokens(text):
        if token.kind in (TokenKind.NAME, TokenKind.NUMBER):
            assert blanked[token.start : token.end] == text[token.start : token.end]


PIECES = (
    'auto s = "a // b";',
    "auto c = '\"'; int kept;",
    "int n = 1'000'000; // it's gone",
    'auto r = R"x(// ")" kept */)x"; int after;',
    'auto r = R"(\\\nkept)"; int after;',
    "/* two\nlines */ int after;",
    "// spliced \\\n gone\nint after;",
    "// spliced \\  \n gone\nint after;",
    "/\\\n/ gone\nint after;",
    "/\\\n* gone */ int after;",
    "na\\\nme = 1;",
    'FOOR"(a)" "b//c";',
    'auto u = u8R"(/*)" "*/";',
    "#if 0\ndon't /*\n#endif\nint seen; // */",
    "int a = '\\''; // gone",
    'auto e = "\\\\"; // gone',
    "// \\\\\n\nint seen;",
    "float f = .5e+3f - 0x1'Fp-2;",
    "#define X /* a\n b */ 1\nint x = X;",
    "int a; %:define Y 2\n",
)


def test_gccs_preprocessor_sees_the_same_code() -> None:
    """All pieces in one text: `-E -P` leaves tokens alone, as they are once comments are gone."""
    for text in ("\n".join(PIECES), "\r\n".join(PIECES)):
        done = subprocess.run(
            ["g++", "-std=c++17", "-E", "-P", "-x", "c++", "-"], input=text.encode(), capture_output=True, check=True
        )
        own = "\n".join(text.splitlines(keepends=False)) if "\r" not in text else text
        dead = next((one for one in directives(own) if one.name == "if"), None)
        alive = next((one for one in directives(own) if one.name == "endif"), None)
        assert dead is not None
        assert alive is not None
        spans = [(one.start, one.end) for one in directives(own)] + [(dead.start, alive.end)]
        seen = [
            "1" if token.spelling == "X" else token.spelling
            for token in significant_tokens(own)
            if not any(start <= token.start < end for start, end in spans)
        ]
        theirs = [token.spelling for token in significant_tokens(done.stdout.decode())]
        assert "".join(seen).replace("\r", "") == "".join(theirs).replace("\r", "")


@pytest.mark.parametrize(
    ("source", "comments", "code"),
    [
        ('a "x // y" b', 'a "x // y" b', 'a "" b'),
        ('a // b "c\nd', "a  \nd", "a  \nd"),
        ('a /* \n " */ b', "a   b", "a   b"),
        ('R"x( ")" // )x" c', 'R"x( ")" // )x" c', '"" c'),
        ("in\\\nt 'x' /", "int 'x' /", "int '' /"),
    ],
)
def test_logical_lines(source: str, comments: str, code: str) -> None:
    assert logical_lines(source) == comments
    assert logical_lines(source, literals=False) == code


def test_directives_are_found_with_their_lines() -> None:
    source = (
        "int a;\n/* # include <a> */ # /* x\n */ include \\\n <b> // c\n"
        'R"(\n#include <d>\n)" #include <e>\n%:define F "g//h"\n#\n'
    )
    found = [(one.name, one.operand, one.line) for one in directives(source)]
    assert found == [("include", "<b>", 2), ("define", 'F "g//h"', 8), ("", "", 9)]


@pytest.mark.parametrize("text", ["/* open", '"open', 'R"x(open', "'open", "/*/", '"\\"'])
def test_what_nothing_closes_is_told(text: str) -> None:
    assert [token.terminated for token in tokens(text)] == [False]


def test_hostile_text_takes_linear_time() -> None:
    for piece in ('R"a(', "/*", "\"'", "launch_gpu_implementation(", "\\\n", "'", "#include <"):
        assert len(list(tokens(piece * 20_000))) > 0
