"""Reading what a model wrote: a candidate's source with its stated speed-up, or a JSON object.

Models wrap the same content in many ways; what is accepted is listed here and nowhere else. A reply that cannot be
used raises UnusableReply, whose reason is written for the model: it goes into the repair prompt. Nothing here
judges the code; whether it compiles is found out by compiling it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kernelblaster.cuda_source.launcher import defines_launcher
from kernelblaster.cuda_source.lexer import TRIVIA, TokenKind, tokens

Shape = TypeVar("Shape", bound=BaseModel)

LANGUAGES = frozenset({"", "cuda", "cu", "cuh", "cpp", "c++", "cc", "cxx", "c"})
"""Info strings, in lower case, of blocks that may hold a candidate."""
_DOCUMENTS = frozenset({"markdown", "md"})
"""Info strings of blocks that may hold a whole answer, with blocks of its own."""
LARGEST_SPEEDUP = 10_000.0
"""A stated speed-up beyond this is a slip of the pen and not an expectation."""
_UNBOUNDED = frozenset({TokenKind.COMMENT, TokenKind.RAW_STRING})
"""What reaches to the end of the text when nothing closes it."""
_JSON_STARTS = 200
"""Opening braces tried before a reply counts as holding no JSON object; bounds the work on hostile text."""

_NO_OBJECT = "the reply holds no JSON object; write one JSON object and nothing else"

# Repetitions are bounded so that no reply, however hostile, takes more than linear time.
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})"
_SPEEDUP = re.compile(
    rf"EXPECTED[_ ]SPEED[-_ ]?UP[*_`\s]{{0,8}}[:=][*_`\s]{{0,8}}[~\u2248]?\s{{0,8}}{_NUMBER}\s{{0,8}}([x\u00d7%]?)"
    rf"(?:\s{{0,8}}(?:-|\u2013|\u2014|to)\s{{0,8}}{_NUMBER}\s{{0,8}}([x\u00d7%]?))?",
    re.IGNORECASE,
)


class UnusableReply(ValueError):
    """The reply holds nothing usable; `reason` tells the model what to write instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class CandidateReply:
    """A reply that proposes a candidate.

    Attributes:
        source: the file, with `\\n` line ends and one at its end.
        expected_speedup: parent's time over the candidate's, as the model states it; None when it states none.
        edits: of a known file that make it up; 0 for a reply that holds the whole file.
        written: characters of code in the reply: the file, or both sides of its edits.
    """

    source: str
    expected_speedup: float | None
    edits: int = 0
    written: int = 0


@dataclass(frozen=True)
class _Block:
    language: str
    text: str
    closed: bool


def parse_reply(text: str) -> CandidateReply:
    """The candidate in a reply.

    Fences of three or more backticks or tildes count, with a language of LANGUAGES. Of several blocks the last one
    that defines `launch_gpu_implementation` is taken, else the longest; where none does, blocks inside a fenced
    Markdown document count, too. A block that the end of the reply cuts off is
    taken only when its code is whole: the launcher is defined and every brace is closed. Raises UnusableReply.
    """
    blocks, prose = _split(after_thoughts(text))
    if not any(defines_launcher(block.text) for block in blocks if block.language in LANGUAGES):
        blocks += [inner for block in blocks if block.language in _DOCUMENTS for inner in _split(block.text)[0]]
    chosen = _choose([block for block in blocks if block.language in LANGUAGES], blocks)
    stated = stated_speedup(prose)
    source = chosen.text.strip("\n") + "\n"
    return CandidateReply(
        source=source,
        expected_speedup=stated if stated is not None else stated_speedup(chosen.text),
        written=len(source),
    )


def _choose(usable: list[_Block], every: list[_Block]) -> _Block:
    whole = [block for block in usable if block.text.strip() and (block.closed or _is_whole(block.text))]
    launching = [block for block in whole if defines_launcher(block.text)]
    if launching:
        return launching[-1]
    if any(not block.closed for block in usable):
        raise UnusableReply(
            "the reply ends inside its code block before the code is complete; write the complete file, shorter"
        )
    if whole:
        return max(whole, key=lambda block: len(block.text))
    if every:
        found = ", ".join(sorted({block.language or "no language" for block in every}))
        raise UnusableReply(
            f"no fenced block holds CUDA source (found: {found}); write the file in one block opened with ```cuda"
        )
    raise UnusableReply(
        "the reply holds no fenced code block; write the complete file in one block opened with ```cuda"
    )


def after_thoughts(text: str) -> str:
    """The text with unified line ends, without the reasoning that some servers leave in front of the answer."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return unified.rpartition("</think>")[2]


def _split(text: str) -> tuple[list[_Block], str]:
    """Fenced blocks and the prose around them."""
    blocks: list[_Block] = []
    prose: list[str] = []
    opened: re.Match[str] | None = None
    body: list[str] = []
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None and not ("`" in fence["info"] and fence["fence"][0] == "`"):
                opened, body = fence, []
            else:
                prose.append(line)
        elif fence is not None and _closes(fence, opened):
            blocks.append(_block(opened, body, closed=True))
            opened = None
        else:
            body.append(line)
    if opened is not None:
        blocks.append(_block(opened, body, closed=False))
    return blocks, "\n".join(prose)


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    return fence["fence"].startswith(opened["fence"]) and not fence["info"].strip()


def _block(opened: re.Match[str], body: list[str], *, closed: bool) -> _Block:
    indent = len(opened["indent"])
    lines = [line[min(indent, len(line) - len(line.lstrip())) :] for line in body]
    words = re.split(r"[\s:,{}_-]+", opened["info"].strip().strip("{}.").lower())
    return _Block(language=words[0].rpartition(".")[2], text="\n".join(lines), closed=closed)


def _is_whole(source: str) -> bool:
    """Whether code that no fence closes is complete: the launcher is there and every brace is closed."""
    if not defines_launcher(source):
        return False
    every = list(tokens(source))
    if any(not token.terminated for token in every if token.kind in _UNBOUNDED):
        return False
    code = [token.spelling for token in every if token.kind not in TRIVIA]
    return code[-1] in ("}", ";") and code.count("{") == code.count("}")


def stated_speedup(text: str) -> float | None:
    """The last stated speed-up: `1.8`, `1.8x`, the low end of `1.5-2x`; `30%` faster is 1.3."""
    stated = list(_SPEEDUP.finditer(text))
    if not stated:
        return None
    low, unit, high, last_unit = stated[-1].groups()
    value = min(float(low), float(high)) if high else float(low)
    if "%" in (unit, last_unit):
        value = 1.0 + value / 100.0
    return value if math.isfinite(value) and 0.0 < value <= LARGEST_SPEEDUP else None


def parse_json(text: str, model_type: type[Shape]) -> Shape:
    """The JSON object in a reply, bare, fenced or between sentences; the first that fits `model_type`.

    NaN and Infinity are not JSON. Raises UnusableReply naming the first field that does not fit.
    """
    return parse_every_json(text, model_type)[0]


def parse_every_json(text: str, model_type: type[Shape]) -> list[Shape]:
    """All outermost JSON objects in a reply that fit `model_type`, at least one.

    Raises UnusableReply naming the first field that does not fit.
    """
    fitting: list[Shape] = []
    refused: ValidationError | None = None
    for found in _objects(after_thoughts(text)):
        try:
            fitting.append(model_type.model_validate(found))
        except ValidationError as error:
            refused = refused or error
    if fitting:
        return fitting
    if refused is None:
        raise UnusableReply(_NO_OBJECT)
    first = refused.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "the object"
    raise UnusableReply(f"the JSON object does not fit: {where}: {first['msg']}")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Outermost JSON objects of a text, in order."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    position = text.find("{")
    for _ in range(_JSON_STARTS):
        if position < 0:
            return
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield found
        position = text.find("{", end)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
