"""compute-sanitizer: its command lines, and its reports as findings."""

from __future__ import annotations

import re
from pathlib import Path

from kernelblaster.devices.profiles import SanitizerFinding

INITCHECK = "initcheck"
TOOLS = ("memcheck", "racecheck", INITCHECK, "synccheck")
BANNER = "COMPUTE-SANITIZER"
"""Begins every report, before the program is started: without it the tool itself did not come up."""
MAX_FINDINGS = 10
"""Findings kept per tool; one bug is reported once per thread."""

_HEAD = re.compile(r"^========= (?P<text>(?:Error: |Warning: )?\S.*)$")
_PLACE = re.compile(r"^=========\s+(?:at|in) (?P<place>.+)$")
_NOT_A_FINDING = (
    BANNER,
    "ERROR SUMMARY",
    "RACECHECK SUMMARY",
    "Program hit",
    "Target application",
    "Error: Target application",
    "Error: process didn't terminate successfully",
    "LEAK",
)
_TOOL_FAILURES = ("Internal Sanitizer Error", "Unable to", "Error: Unable to", "Error: No attachable process")


def sanitizer_command(sanitizer: Path, tool: str, log: Path) -> list[str]:
    """Arguments to put before the program; the report goes to `log`."""
    return [str(sanitizer), "--tool", tool, "--print-limit", str(MAX_FINDINGS), "--log-file", str(log)]


def tool_failure(text: str) -> str | None:
    """What the tool itself, not the program under it, failed at; None when it worked."""
    for line in text.splitlines():
        words = line.removeprefix("=========").strip()
        if words.startswith(_TOOL_FAILURES):
            return words
    return None


def parse_report(tool: str, text: str) -> list[SanitizerFinding]:
    """Findings of a report, the same message at the same place once, at most `MAX_FINDINGS`."""
    findings: dict[tuple[str, str | None], SanitizerFinding] = {}
    message: str | None = None
    for line in text.splitlines():
        head, place = _HEAD.match(line), _PLACE.match(line)
        if place and message is not None:
            _keep(findings, tool, message, place["place"])
            message = None
        elif head and not line.startswith("=========  "):
            if message is not None:
                _keep(findings, tool, message, None)
            skipped = head["text"].startswith(_NOT_A_FINDING)
            message = None if skipped else head["text"]
    if message is not None:
        _keep(findings, tool, message, None)
    return list(findings.values())[:MAX_FINDINGS]


def _keep(findings: dict[tuple[str, str | None], SanitizerFinding], tool: str, message: str, place: str | None) -> None:
    findings.setdefault((message, place), SanitizerFinding(tool=tool, message=message, location=place))
