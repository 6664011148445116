"""What a replay cannot compare: parts of the search whose absence changes nothing where a recording answers."""

from __future__ import annotations

from collections.abc import Iterable

from kernelblaster.config import ModelKind, RunConfig, SearchPart

_IDLE = (SearchPart.HYPOTHESES, SearchPart.RECALL)
"""Parts that no replay has."""
_IN_PROMPTS = (
    SearchPart.LESSONS,
    SearchPart.EXPERIENCE,
    SearchPart.HISTORY,
    SearchPart.PROFILE,
    SearchPart.TILES,
    SearchPart.HOT_LINES,
)
"""Parts that change prompts alone, which decide nothing there: replies are found by kernel and technique."""


def replay_warnings(config: RunConfig) -> list[str]:
    """What is switched off in vain; empty where a model is asked."""
    if config.model.kind != ModelKind.RECORDED:
        return []
    off = config.search.ablate
    idle, shown = _named(_IDLE, off), _named(_IN_PROMPTS, off)
    warnings = []
    if idle:
        warnings.append(f"switching {idle} off changed nothing: a replay of a recording does without in any case")
    if shown:
        warnings.append(
            f"switching {shown} off changed prompts alone: what a recording replies does not depend on them"
        )
    return warnings


def _named(parts: Iterable[SearchPart], off: Iterable[SearchPart]) -> str:
    return ", ".join(part for part in parts if part in off)
