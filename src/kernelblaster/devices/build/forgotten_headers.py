"""Standard headers that the build includes for a source that uses them and forgot to."""

from __future__ import annotations

import re

from kernelblaster.cuda_source.lexer import directives, logical_lines

_USES = {
    "vector": r"\bstd::vector\b",
    "cstdio": r"\bf?printf\s*\(",
    "cstdlib": r"\bstd::(?:exit|abort)\b|\bexit\s*\(",
    "algorithm": r"\bstd::(?:min|max)\b",
    "cmath": r"\bstd::(?:sqrt|exp|ceil|floor)\b",
}


def forgotten_headers(source: str) -> list[str]:
    """Standard headers that the source uses without including them."""
    included = {directive.operand for directive in directives(source) if directive.name == "include"}
    code = logical_lines(source, literals=False)
    return [header for header, use in _USES.items() if f"<{header}>" not in included and re.search(use, code)]
