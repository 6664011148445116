"""The edges of the content trial: replies to kernels of the recorded searches, judged and timed on an H200."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from analysis import THIRD_INDEX
from edges import MeasuredEdge, Outcome, Refused
from parents import Parent
from rows import PROMPTS, REPLIES, ROWS, AskedPrompt, GivenReply, JudgedReply, read

from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.timing.statistics import Interval, decide
from kernelblaster.evaluation.timing.stopwatch import MEASURED_THRESHOLD
from kernelblaster.knowledge.credit import declared_techniques
from kernelblaster.knowledge.schema import KnowledgeDocument
from kernelblaster.models.edits import parse_candidate
from kernelblaster.models.replies import UnusableReply

RUN = "content-trial-h200"
MODEL = "one language model (docs/results/content_trial/plan.md)"
JUDGED = datetime(2026, 11, 23, 21, 39, tzinfo=UTC)
"""When the last of the first two replies to each prompt had been judged; rows tell no times."""
THIRD_JUDGED = datetime(2026, 11, 30, 5, 0, tzinfo=UTC)
"""The same of the third ones."""
_LESSON = re.compile(r"^- lesson: (.*)$", re.MULTILINE)
_NO_MESSAGE = "the compiler failed without an error message"


def trial_edges(parents: Mapping[str, Parent], document: KnowledgeDocument) -> Iterator[MeasuredEdge | Refused]:
    """Every judged reply, or why it is none."""
    judged = {row.id: row for row in read(ROWS, JudgedReply)}
    replies = {reply.id: reply.text for reply in read(REPLIES, GivenReply)}
    texts = {lesson.text: lesson.id for lesson in document.lessons}
    for number, prompt in enumerate(read(PROMPTS, AskedPrompt)):
        try:
            row = judged.get(prompt.id)
            if row is None:
                raise Refused("it was not judged")
            declared = declared_techniques(replies[prompt.id], document.techniques)
            yield _edge(prompt, number, row, replies[prompt.id], parents, texts, declared)
        except Refused as refused:
            yield refused


def _edge(
    prompt: AskedPrompt,
    number: int,
    row: JudgedReply,
    text: str,
    parents: Mapping[str, Parent],
    texts: Mapping[str, str],
    declared: tuple[str, ...],
) -> MeasuredEdge:
    try:
        candidate = parse_candidate(text, None)
    except UnusableReply as error:
        raise Refused("the reply holds no kernel") from error
    return MeasuredEdge(
        run=RUN,
        slot=f"{prompt.parent}/{prompt.id}",
        rollout=number,
        step=1,
        parent=parents[prompt.parent],
        candidate=candidate.source,
        asked=prompt.technique,
        declared=declared,
        stated=row.stated_speedup,
        outcome=outcome_of(row),
        model=MODEL,
        when=THIRD_JUDGED if prompt.reply == THIRD_INDEX else JUDGED,
        lessons=tuple(texts[line] for line in _LESSON.findall(prompt.text) if line in texts),
    )


def outcome_of(row: JudgedReply) -> Outcome:
    """What a row says. Raises Refused for what the machine did, and for a row that contradicts itself."""
    if row.reason == _NO_MESSAGE:
        raise Refused("the machine that judged it could not compile it, and no error of the kernel's was found")
    verdict = Verdict(row.verdict)
    if verdict is not Verdict.CORRECT:
        return Outcome(verdict, row.reason)
    if row.speedup is None or row.low is None or row.high is None:
        raise Refused("it was not compared with its parent")
    # Rows keep whether a reply is faster; slower and undecided ones are told apart by the rule that decided that.
    decision = decide(Interval(row.speedup, row.low, row.high), MEASURED_THRESHOLD)
    if (decision is Decision.FASTER) is not row.faster:
        raise Refused("its interval contradicts its decision")
    return Outcome(verdict, "", row.speedup, row.low, row.high, decision)
