"""What a candidate is written in, told from its text."""

from __future__ import annotations

import re
from enum import StrEnum

_DEFINES_MODEL = re.compile(r"^class[ \t]+ModelNew\b", re.MULTILINE)
_IMPORTS = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:torch|triton)\b", re.MULTILINE)


class CandidateLanguage(StrEnum):
    """What a candidate is written in."""

    CUDA = "cuda"
    """CUDA C++ that defines the launcher."""
    TRITON = "triton"
    """A Python module that defines `ModelNew`, with kernels in Triton."""


def language_of(source: str) -> CandidateLanguage:
    """Triton for a Python module that defines `ModelNew`, else CUDA."""
    return (
        CandidateLanguage.TRITON
        if _DEFINES_MODEL.search(source) and _IMPORTS.search(source)
        else CandidateLanguage.CUDA
    )
