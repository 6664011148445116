"""The source in what an agent submits: a file as it is, or a whole reply with the file in a fenced block."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from kernelblaster.errors import UsageError
from kernelblaster.models.replies import UnusableReply, parse_reply

MOST_BYTES = 256 * 1024
"""Of a submission."""
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_IMPORTS_TRITON = re.compile(r"^[ \t]*(?:import|from)[ \t]+triton\b", re.MULTILINE)
_DEFINES_MODEL = re.compile(r"^class[ \t]+ModelNew\b", re.MULTILINE)


class Language(StrEnum):
    """What a submission is written in."""

    AUTO = "auto"
    """Triton where the text imports triton and defines `ModelNew`, else CUDA."""
    CUDA = "cuda"
    TRITON = "triton"


class UnsupportedLanguage(UsageError):
    """A language was asked for that this environment does not judge."""


class SubmissionTooLarge(UsageError):
    """A submission is larger than `MOST_BYTES`."""


@dataclass(frozen=True)
class Submission:
    """What was submitted.

    Attributes:
        source: CUDA source; None where the text holds none.
        reason: why there is none, one line for the agent.
    """

    source: str | None
    reason: str = ""


def require_cuda(language: Language) -> None:
    """Raise UnsupportedLanguage for a language, named by the caller, that is not judged."""
    if language is Language.TRITON:
        raise UnsupportedLanguage("Triton submissions are not judged here", hint="submit CUDA, language `cuda`")


def read_submission(code: str, language: Language) -> Submission:
    """The CUDA source in a submission. Raises UnsupportedLanguage, SubmissionTooLarge."""
    require_cuda(language)
    if len(code.encode("utf-8", errors="replace")) > MOST_BYTES:
        raise SubmissionTooLarge(f"a submission holds at most {MOST_BYTES} bytes", hint="send the kernel file alone")
    if not code.strip():
        return Submission(None, "nothing was submitted; write the complete .cu file")
    if language is Language.AUTO and _IMPORTS_TRITON.search(code) and _DEFINES_MODEL.search(code):
        return Submission(None, "this is Triton, which is not judged here; write one .cu file in CUDA C++")
    if not _FENCE.search(code):
        return Submission(code)
    try:
        return Submission(parse_reply(code).source)
    except UnusableReply as unusable:
        return Submission(None, unusable.reason)
