"""Sanitizers over a submission: when they run, and what is told of what they found, with the lines that it is about.

They change no verdict and no reward: they say why a kernel crashes or computes wrong values, or, where that is asked
for, what a correct one does wrong without showing it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from kernelblaster.agent.sources import cut_middle
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier

FAILURES = frozenset({Verdict.RUNTIME_ERROR, Verdict.WRONG_VALUES, Verdict.NONDETERMINISTIC})
"""Verdicts that a finding may explain."""
MOST_FINDINGS = 8
_MESSAGE_CHARACTERS = 300
_LINE_CHARACTERS = 160
_PLACE = re.compile(r"\bcandidate\.(?:cu|py):(?P<line>\d{1,7})\b")


class ToldFinding(BaseModel):
    """One finding, with the line of the submission that it is about where that is known."""

    model_config = ConfigDict(frozen=True)

    tool: str
    """memcheck, racecheck, initcheck, synccheck"""
    message: str
    """May hold names that the candidate chose."""
    line: int | None
    """Of the submission, from 1."""
    code: str
    """That line; empty where it is unknown."""

    @property
    def text(self) -> str:
        """For a model to read."""
        return f"{self.tool}: {self.message}" + (f"\n{self.line}: {self.code}" if self.line is not None else "")


def may_be_sanitized(evaluation: Evaluation) -> bool:
    """Whether a submission was run, honestly as far as is known, on a device that could run it."""
    return evaluation.tier is not Tier.COMPILE and (evaluation.correct or evaluation.verdict in FAILURES)


def fails_for_an_unknown_reason(evaluation: Evaluation) -> bool:
    """Whether sanitizers run although nobody asked: a failure that they may explain, at the tier `full`."""
    return evaluation.tier is Tier.FULL and evaluation.verdict in FAILURES


def told_findings(findings: Sequence[SanitizerFinding], source: str) -> tuple[ToldFinding, ...]:
    """What is told of findings: the first ones, bounded."""
    lines = source.split("\n")
    return tuple(_told(finding, lines) for finding in findings[:MOST_FINDINGS])


def _told(finding: SanitizerFinding, lines: Sequence[str]) -> ToldFinding:
    place = _PLACE.search(finding.location or "")
    number = None if place is None else int(place["line"])
    known = number is not None and 0 < number <= len(lines)
    return ToldFinding(
        tool=finding.tool,
        message=cut_middle(" ".join(finding.message.split()), _MESSAGE_CHARACTERS),
        line=number if known else None,
        code=lines[number - 1].strip()[:_LINE_CHARACTERS] if known and number is not None else "",
    )
