"""What a candidate's source text may not contain, and the small slips in it that the build forgives.

Works on text alone, before any compiler runs. Line numbers never change, so that messages match the candidate.
"""

from __future__ import annotations

import re

from kernelblaster.devices.build.symbols import LAUNCHER
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind

_TOKENS = re.compile(
    r"""//(?:[^\n\\]|\\.|\\\n)*          # line comment, continued by a backslash
      | /\*.*?\*/                        # block comment
      | R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
      | "(?:[^"\\\n]|\\.|\\\n)*"
      | '(?:[^'\\\n]|\\.|\\\n)*'
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*(?:\#|%:|\?\?=)[ \t]*(include_next|include|import|embed)\b[ \t]*(.*)$", re.MULTILINE)
_PLAIN_HEADER = re.compile(r"""^(?:<[^>\n]+>|"[^"\n]+")\s*$""")
_INLINE_LAUNCHER = re.compile(
    rf"\b(?:(?:static|inline|__inline__|__forceinline__|constexpr)[ \t]+)+(?=(?:__host__[ \t]+)?void\s+{LAUNCHER}\s*\()"
)
_FORGIVEN_HEADERS = {
    "vector": r"\bstd::vector\b",
    "cstdio": r"\bf?printf\s*\(",
    "cstdlib": r"\bstd::(?:exit|abort)\b|\bexit\s*\(",
    "algorithm": r"\bstd::(?:min|max)\b",
    "cmath": r"\bstd::(?:sqrt|exp|ceil|floor)\b",
}


_SEAM = re.compile(r'''"\s*"''')
"""Between two string literals that the compiler joins."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3}))")


def without_comments(source: str) -> str:
    """The source with comments blanked and literals kept; line breaks stay."""

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return re.sub(r"[^\n]", " ", text) if text.startswith(("//", "/*")) else text

    return _TOKENS.sub(blank, source)


def check_source(source: str) -> None:
    """Raise BuildFailure (POLICY) when the source reaches for files that are not the toolkit's headers."""
    # Joined first: a continuation may split a directive anywhere, and `\r` would hide an end of line.
    text = without_comments(source.replace("\r", "").replace("\\\n", ""))
    for match in _DIRECTIVE.finditer(text):
        reason = _reason_to_refuse(match[1], match[2].strip())
        if reason is not None:
            line = text.count("\n", 0, match.start()) + 1
            raise BuildFailure(BuildFailureKind.POLICY, reason, f"line {line}: {match[0].strip()}")
    spoken = _ESCAPE.sub(_character, _SEAM.sub("", text))
    for word in ("incbin", "LD_PRELOAD", "/proc/"):
        if word in spoken:
            raise BuildFailure(BuildFailureKind.POLICY, f"the source contains {word}")


def _character(match: re.Match[str]) -> str:
    """The character that an escape in a string literal stands for."""
    return chr(int(match[1], 16) if match[1] else int(match[2], 8))


def _reason_to_refuse(directive: str, operand: str) -> str | None:
    if directive in ("embed", "import", "include_next"):
        return f"#{directive} is not allowed in a candidate"
    if not _PLAIN_HEADER.match(operand):
        return "an #include must name its header literally"
    header = operand.rstrip()[1:-1].strip()
    if header.startswith(("/", "~")) or ".." in header.split("/"):
        return f"#include of a path outside the toolkit: {header}"
    return None


def forgive(source: str) -> str:
    """Make an `inline` or `static` launcher visible to the linker; leave all else as it is."""
    return _INLINE_LAUNCHER.sub("", source)


def forgotten_headers(source: str) -> list[str]:
    """Standard headers that the source uses without including them."""
    text = without_comments(source)
    return [
        header
        for header, use in _FORGIVEN_HEADERS.items()
        if re.search(use, text) and not re.search(rf"#\s*include\s*<{header}>", text)
    ]
