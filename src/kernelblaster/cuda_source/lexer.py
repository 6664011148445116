"""Reads C++ text: comments, literals, raw strings, spliced lines, directives.

Everything in this product that looks into C++ source does so through this module, so that all agree with the compiler
on what is code. The rules are those of translation phases 1 to 3 of C++17 as GCC, whose preprocessor nvcc uses,
applies them:

- A backslash at the end of a line, blanks behind it or not, splices the next line on; inside a raw string it does not.
- A quote that nothing closes reaches to the end of its line; a comment or raw string that nothing closes, to the end
  of the text. What lies inside opens nothing.
- `'` between the digits of a number opens no literal, and `R"` at the end of a longer name opens no raw string.

Every function takes time linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import StrEnum


class TokenKind(StrEnum):
    """What a stretch of text is."""

    SPACE = "space"
    NEWLINE = "newline"
    """The end of a logical line."""
    SPLICE = "splice"
    """A backslash and the end of a line, between two tokens."""
    COMMENT = "comment"
    STRING = "string"
    RAW_STRING = "raw string"
    CHARACTER = "character"
    NAME = "name"
    NUMBER = "number"
    PUNCTUATION = "punctuation"


BLANKS = frozenset({TokenKind.SPACE, TokenKind.SPLICE, TokenKind.COMMENT})
"""What separates tokens of one logical line."""
TRIVIA = BLANKS | {TokenKind.NEWLINE}
"""What separates tokens."""
LITERALS = frozenset({TokenKind.STRING, TokenKind.RAW_STRING, TokenKind.CHARACTER})


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of a text. All tokens of a text, in order, make up the text.

    Attributes:
        start, end: where it lies in the text.
        spelling: it without the splices in it; for a raw string, exactly as it is written.
        inner_start, inner_end: where the content of a literal lies, between its quotes; all of any other token.
        terminated: False for a literal or comment that nothing closes.
    """

    kind: TokenKind
    start: int
    end: int
    spelling: str
    inner_start: int
    inner_end: int
    terminated: bool = True


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessor directive.

    Attributes:
        name: `include`, `define`, ...; empty for a lone `#`.
        operand: what follows on its logical line, each comment replaced by a blank.
        line: number of the line that it begins on, from 1.
        start, end: where it lies in the text, from its `#` to before the end of the line.
    """

    name: str
    operand: str
    line: int
    start: int
    end: int


_NEWLINE = r"\r?\n"
_SPLICE = re.compile(rf"\\[ \t\f\v\0]*(?:{_NEWLINE}|\Z)")
_KEPT = re.compile(rf"{_SPLICE.pattern}|{_NEWLINE}")
_PREFIX = r"(?:u8|[uUL])?"
_TOKEN = re.compile(
    rf"""
      (?P<newline> {_NEWLINE} )
    | (?P<space> (?:[ \t\f\v\0]|\r(?!\n))+ )
    | (?P<comment> //(?:[^\r\n]|\r(?!\n))* | /\*(?:.*?\*/|.*) )
    | (?P<raw> {_PREFIX}R"(?P<delimiter>[^()\\\s]{{0,16}})\( )
    | (?P<string> {_PREFIX}"(?:\\[^\r\n]|\\?\r(?!\n)|[^"\\\r\n])*"? )
    | (?P<character> {_PREFIX}'(?:\\[^\r\n]|\\?\r(?!\n)|[^'\\\r\n])*'? )
    | (?P<number> \.?[0-9](?:[eEpP][+-]|'(?=\w)|[\w.])* )
    | (?P<name> (?:[^\W\d]|\$)[\w$]* )
    | (?P<punctuation> %:|\?\?=|. )
    """,
    re.VERBOSE | re.DOTALL,
)
_HASHES = frozenset({"#", "%:", "??="})


class _SplicedText:
    """A text without its splices, and where its characters lie in the original."""

    def __init__(self, original: str) -> None:
        self.original = original
        self._starts, self._origins = [0], [0]
        pieces, position, length = [], 0, 0
        for splice in _SPLICE.finditer(original):
            pieces.append(original[position : splice.start()])
            length += len(pieces[-1])
            position = splice.end()
            self._starts.append(length)
            self._origins.append(position)
        self.text = "".join([*pieces, original[position:]])

    def origin(self, position: int) -> int:
        """Where a character lies in the original; one past its end for the end."""
        piece = bisect_right(self._starts, position) - 1
        return self._origins[piece] + position - self._starts[piece]

    def behind(self, position: int) -> int:
        """Where what comes before `position` (from 1) ends in the original: before a splice that follows."""
        return self.origin(position - 1) + 1

    def position(self, origin: int) -> int:
        """Where a character of the original lies; for one inside a splice, what follows it."""
        piece = bisect_right(self._origins, origin) - 1
        following = self._starts[piece + 1] if piece + 1 < len(self._starts) else len(self.text)
        return min(self._starts[piece] + origin - self._origins[piece], following)


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a text, in order; no character is left out."""
    spliced = _SplicedText(text)
    position = end = 0
    while position < len(spliced.text):
        match = _TOKEN.match(spliced.text, position)
        assert match is not None, "some alternative matches any character"
        start = spliced.origin(position)
        if start > end:
            yield Token(TokenKind.SPLICE, end, start, "", end, start)
        token = _raw_string(match, spliced) if match["raw"] else _token(match, spliced)
        yield token
        end = token.end
        position = spliced.position(end) if match["raw"] else match.end()
    if end < len(text):
        yield Token(TokenKind.SPLICE, end, len(text), "", end, len(text))


def _token(match: re.Match[str], spliced: _SplicedText) -> Token:
    kind, spelling = TokenKind(str(match.lastgroup)), match[0]
    start, end = spliced.origin(match.start()), spliced.behind(match.end())
    if kind is TokenKind.COMMENT:
        closed = spelling.startswith("//") or (len(spelling) >= len("/**/") and spelling.endswith("*/"))
        return Token(kind, start, end, spelling, start, end, closed)
    if kind not in LITERALS:
        return Token(kind, start, end, spelling, start, end)
    quote = '"' if kind is TokenKind.STRING else "'"
    opening = spelling.index(quote) + 1
    closed = len(spelling) > opening and spelling.endswith(quote) and not _ends_in_escape(spelling[opening:])
    inner_end = spliced.behind(match.end() - 1) if closed else end
    return Token(kind, start, end, spelling, spliced.behind(match.start() + opening), inner_end, closed)


def _ends_in_escape(content: str) -> bool:
    """Whether the last character of a literal is one that a backslash escapes."""
    before = content[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _raw_string(match: re.Match[str], spliced: _SplicedText) -> Token:
    """The raw string that begins with a match; its content is looked for in the original, which has its splices."""
    start, inner = spliced.origin(match.start()), spliced.behind(match.end())
    closing = f'){match["delimiter"]}"'
    found = spliced.original.find(closing, inner)
    inner_end = found if found >= 0 else len(spliced.original)
    end = found + len(closing) if found >= 0 else inner_end
    return Token(TokenKind.RAW_STRING, start, end, spliced.original[start:end], inner, inner_end, found >= 0)


def significant_tokens(text: str) -> list[Token]:
    """Tokens that a compiler sees: neither blanks nor comments nor ends of lines."""
    return [token for token in tokens(text) if token.kind not in TRIVIA]


def logical_lines(text: str, *, literals: bool = True) -> str:
    """The text as the compiler reads its lines: spliced ones joined, each comment replaced by a blank.

    Raw strings stay as they are written. Without `literals` only the quotes of each literal are left. To read the
    result with this module again would be wrong: what is left of `\\\\` at the end of a line is no splice.
    """

    def spelled(token: Token) -> str:
        if token.kind is TokenKind.COMMENT:
            return " "
        if literals or token.kind not in LITERALS:
            return token.spelling
        return "''" if token.kind is TokenKind.CHARACTER else '""'

    return "".join(map(spelled, tokens(text)))


def blank_comments(text: str) -> str:
    """The text with comments blanked. Length, positions and line breaks stay."""
    return _blank(text, {TokenKind.COMMENT})


def blank_comments_and_literals(text: str) -> str:
    """The text with comments and what is inside literals blanked: code alone. Length, positions, line breaks stay."""
    return _blank(text, {TokenKind.COMMENT, *LITERALS})


def _blank(text: str, kinds: Container[TokenKind]) -> str:
    pieces: list[str] = []
    for token in tokens(text):
        if token.kind not in kinds:
            pieces.append(text[token.start : token.end])
            continue
        if token.kind is TokenKind.COMMENT:
            _drop_stray_backslash(pieces)
        inner = _blanks(text[token.inner_start : token.inner_end])
        pieces += [text[token.start : token.inner_start], inner, text[token.inner_end : token.end]]
    return "".join(pieces)


def _blanks(text: str) -> str:
    """Blanks in place of a text; its ends of lines and splices stay."""
    kept, position = [], 0
    for match in _KEPT.finditer(text):
        kept += [" " * (match.start() - position), match[0]]
        position = match.end()
    return "".join([*kept, " " * (len(text) - position)])


def _drop_stray_backslash(pieces: list[str]) -> None:
    """Blank a backslash that stands before a comment: it means nothing there, and before blanks would be a splice."""
    for index in range(len(pieces) - 1, -1, -1):
        bare = pieces[index].rstrip(" \t\f\v\0")
        if bare:
            if bare == "\\":
                pieces[index] = " " * len(pieces[index])
            return


def directives(text: str) -> Iterator[Directive]:
    """All preprocessor directives, those that are never compiled, too."""
    line, counted = 1, 0
    fresh, found = True, list[Token]()
    for token in [*tokens(text), Token(TokenKind.NEWLINE, len(text), len(text), "", len(text), len(text))]:
        if token.kind is TokenKind.NEWLINE:
            if found:
                line += text.count("\n", counted, found[0].start)
                counted = found[0].start
                yield _directive(found, line, token.start)
            fresh, found = True, []
        elif found or (fresh and token.spelling in _HASHES):
            found.append(token)
        elif token.kind not in BLANKS:
            fresh = False


def _directive(found: list[Token], line: int, end: int) -> Directive:
    rest = [token for token in found[1:] if token.kind is not TokenKind.SPLICE]
    while rest and rest[0].kind in BLANKS:
        rest = rest[1:]
    named = bool(rest) and rest[0].kind is TokenKind.NAME
    operand = "".join(" " if token.kind is TokenKind.COMMENT else token.spelling for token in rest[named:])
    return Directive(rest[0].spelling if named else "", operand.strip(), line, found[0].start, end)
