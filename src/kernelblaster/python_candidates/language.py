"""What a candidate is written in, told from its text."""

from __future__ import annotations

import re
from enum import StrEnum

_DEFINES_MODEL = re.compile(r"^class[ \t]+ModelNew\b", re.MULTILINE)
_INLINE = re.compile(r"\bload_inline\b")
_IMPORTS = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:torch|triton)\b", re.MULTILINE)


class CandidateLanguage(StrEnum):
    """What a candidate is written in."""

    CUDA = "cuda"
    """CUDA C++ that defines the launcher."""
    TRITON = "triton"
    """A Python module that defines `ModelNew`, with kernels in Triton."""
    INLINE = "inline"
    """A Python module that defines `ModelNew`, with CUDA C++ for `torch.utils.cpp_extension.load_inline`."""


def language_of(source: str) -> CandidateLanguage:
    """CUDA unless it is a Python module that defines `ModelNew`."""
    if not (_DEFINES_MODEL.search(source) and _IMPORTS.search(source)):
        return CandidateLanguage.CUDA
    return CandidateLanguage.INLINE if _INLINE.search(source) else CandidateLanguage.TRITON
