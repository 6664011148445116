"""The source that a completion names."""

from __future__ import annotations

from kernelblaster.environment.submission import Language, Submission, SubmissionTooLarge, has_fence, read_submission
from kernelblaster.models.replies import UnusableReply, parse_reply
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.rows import PromptRow, ReplyForm


def read_completion(text: str, row: PromptRow) -> Submission:
    """The source in a completion. Text outside a fence is no source: a cut-off reply must not be judged as one.

    Raises UnsupportedLanguage for a row that asks for Triton where that is not installed.
    """
    if row.reply is ReplyForm.CHOICE:
        sources = row.sources
        chosen = sources.get(text.strip())
        return Submission(chosen, "" if chosen is not None else f"the reply is none of {', '.join(sources)}")
    if row.language is CandidateLanguage.TRITON:
        return _module(text)
    try:
        return Submission(parse_reply(text).source)
    except UnusableReply as unusable:
        return Submission(None, unusable.reason)


def _module(text: str) -> Submission:
    if not has_fence(text):
        return Submission(None, "the reply holds no fenced block")
    try:
        return read_submission(text, Language.TRITON, (Language.TRITON,))
    except SubmissionTooLarge as error:
        return Submission(None, error.message)
