"""What a candidate's source text may not contain. Works on text alone, before any compiler runs."""

from __future__ import annotations

import re

from kernelblaster.cuda_source.lexer import Directive, directives, logical_lines
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind

_PLAIN_HEADER = re.compile(r'<[\w./+-]+>|"[\w./+-]+"')
_HAS_HEADER = re.compile(r"\b__has_(?:include|include_next|embed)\s*\((?P<operand>[^)]*)")
_SEAM = re.compile(r'''"\s*"''')
"""Between two string literals that the compiler joins."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3}))")


def check_source(source: str) -> None:
    """Raise BuildFailure (POLICY) when the source reaches for files that are not the toolkit's headers."""
    for directive in directives(source):
        reason = _reason_to_refuse(directive)
        if reason is not None:
            shown = f"#{directive.name} {directive.operand}"
            raise BuildFailure(BuildFailureKind.POLICY, reason, f"line {directive.line}: {shown}")
    spoken = _ESCAPE.sub(_character, _SEAM.sub("", logical_lines(source)))
    for word in ("incbin", "LD_PRELOAD", "/proc/"):
        if word in spoken:
            raise BuildFailure(BuildFailureKind.POLICY, f"the source contains {word}")


def _character(match: re.Match[str]) -> str:
    """The character that an escape in a string literal stands for."""
    return chr(int(match[1], 16) if match[1] else int(match[2], 8))


def _reason_to_refuse(directive: Directive) -> str | None:
    if directive.name in ("embed", "import", "include_next"):
        return f"#{directive.name} is not allowed in a candidate"
    if directive.name == "include":
        return _reason_to_refuse_header(directive.operand)
    for asked in _HAS_HEADER.finditer(directive.operand):
        reason = _reason_to_refuse_header(asked["operand"].strip())
        if reason is not None:
            return reason
    return None


def _reason_to_refuse_header(operand: str) -> str | None:
    # What is no plain name may end elsewhere for the compiler than it does here, and hide what follows.
    if not _PLAIN_HEADER.fullmatch(operand):
        return "an #include must name its header literally"
    header = operand[1:-1]
    if header.startswith("/") or ".." in header.split("/"):
        return f"#include of a path outside the toolkit: {header}"
    return None
