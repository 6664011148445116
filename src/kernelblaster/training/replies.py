"""The source that a completion names."""

from __future__ import annotations

from kernelblaster.environment.submission import Submission
from kernelblaster.models.replies import UnusableReply, parse_reply
from kernelblaster.training.rows import PromptRow, ReplyForm


def read_completion(text: str, row: PromptRow) -> Submission:
    """The source in a completion. Text outside a fence is no source: a cut-off reply must not be judged as one."""
    if row.reply is ReplyForm.CHOICE:
        sources = row.sources
        chosen = sources.get(text.strip())
        return Submission(chosen, "" if chosen is not None else f"the reply is none of {', '.join(sources)}")
    try:
        return Submission(parse_reply(text).source)
    except UnusableReply as unusable:
        return Submission(None, unusable.reason)
