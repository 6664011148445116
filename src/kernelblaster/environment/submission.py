"""The source in what an agent submits: a file as it is, or a whole reply with the file in a fenced block."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from kernelblaster.errors import UsageError
from kernelblaster.models.replies import UnusableReply, parse_reply
from kernelblaster.paths import how_to_install
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.python_candidates.recording import has_triton

MOST_BYTES = 256 * 1024
"""Of a submission."""
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_PYTHON_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?:python3?|py|triton)[ \t]*\n(?P<text>.*?)^[ \t]*(?P=fence)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


class Language(StrEnum):
    """What a submission is said to be written in."""

    AUTO = "auto"
    """Where the text is a Python module that defines `ModelNew`, inline where it calls `load_inline`, else Triton; CUDA
    where it is none."""
    CUDA = "cuda"
    TRITON = "triton"
    INLINE = "inline"
    """CUDA C++ in a Python module, by `torch.utils.cpp_extension.load_inline`."""


_IN_PYTHON = frozenset({Language.TRITON, Language.INLINE})
_NEEDS = {
    Language.TRITON: "a module that defines ModelNew with kernels in Triton",
    Language.INLINE: "a module that defines ModelNew and calls load_inline",
}
_NO_PYTHON = "Python modules are not judged here, for Triton is not installed; write a .cu file"


class UnsupportedLanguage(UsageError):
    """A language was asked for that this environment does not judge."""


class SubmissionTooLarge(UsageError):
    """A submission is larger than `MOST_BYTES`."""


@dataclass(frozen=True)
class Submission:
    """What was submitted.

    Attributes:
        source: CUDA C++ or Python; None where the text holds neither.
        reason: why there is none, one line for the agent.
    """

    source: str | None
    reason: str = ""


def has_fence(text: str) -> bool:
    """Whether a fenced block opens in a text."""
    return _FENCE.search(text) is not None


def within_bounds(code: str) -> str:
    """What a policy wrote; nothing in the place of what no submission holds, so that it costs its turn and no more."""
    return code if _size(code) <= MOST_BYTES else ""


def _size(code: str) -> int:
    return len(code.encode("utf-8", errors="replace"))


def require_judged(language: Language) -> None:
    """Raise UnsupportedLanguage for a language, named by the caller, that is not judged here."""
    if language in _IN_PYTHON and not has_triton():
        raise UnsupportedLanguage(
            "Triton is not installed here, with which Python modules are recorded",
            hint=f"{how_to_install('triton')}, or submit CUDA, language `cuda`",
        )


def read_submission(code: str, language: Language, allowed: Collection[Language]) -> Submission:
    """The source in a submission.

    Args:
        code: a file, or a reply with one in a fenced block.
        language: what it is said to be.
        allowed: languages of the episode; `AUTO` stands for all.

    Raises:
        UnsupportedLanguage: a language of Python modules is named, and Triton not installed.
        SubmissionTooLarge: of more than `MOST_BYTES`.
    """
    require_judged(language)
    if _size(code) > MOST_BYTES:
        raise SubmissionTooLarge(f"a submission holds at most {MOST_BYTES} bytes", hint="send the kernel file alone")
    if not code.strip():
        return Submission(None, "nothing was submitted; write the complete file")
    module = None if language is Language.CUDA else _python_in(code)
    found = Language.CUDA if module is None else Language(language_of(module))
    if language is Language.TRITON and module is None:
        return Submission(None, "this is no Python module that imports triton and defines ModelNew")
    if language in _IN_PYTHON and found is not language:
        return Submission(None, f"this is {found}, and no {language}: {_NEEDS[language]}")
    if Language.AUTO not in allowed and found not in allowed:
        return Submission(None, f"this is {found}; write {' or '.join(allowed)}")
    if module is not None:
        return Submission(module) if has_triton() else Submission(None, _NO_PYTHON)
    if not has_fence(code):
        return Submission(code)
    try:
        return Submission(parse_reply(code).source)
    except UnusableReply as unusable:
        return Submission(None, unusable.reason)


def _python_in(code: str) -> str | None:
    """The Python module in a submission; None where there is none."""
    blocks = [block["text"] for block in _PYTHON_BLOCK.finditer(code)] or ([] if has_fence(code) else [code])
    modules = [text for text in blocks if language_of(text) is not CandidateLanguage.CUDA]
    return modules[-1] if modules else None
