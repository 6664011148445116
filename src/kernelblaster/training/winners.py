"""The fastest kernel of each problem, measured again: what was fastest once may have been lucky.

A winner is compared in several pairs of fresh processes, and sanitizers look at it. It holds where each pair found it
correct and faster and no sanitizer found anything; else its speed-up counts as 1. Each is kept as soon as it is known.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.scores import decided_speedup
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line
from kernelblaster.training.judging import Scorer
from kernelblaster.training.metrics import speedup
from kernelblaster.training.replies import read_completion
from kernelblaster.training.rollouts import Rollout
from kernelblaster.training.rows import PromptRow

WINNERS = "winners.jsonl"
_FIRST = 2
"""Number of the first repetition: the one before it is that of gains hardly to be believed."""


class Winner(BaseModel):
    """A line of `winners.jsonl`."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    problem: str
    source_sha256: str
    speedup: float
    """As it was sampled."""
    again: tuple[float, ...]
    """In each pair of fresh processes, decided faster or 1."""
    findings: tuple[str, ...]
    """Of sanitizers."""

    @property
    def gain(self) -> float:
        """The median of the pairs; 1 where one of them is no gain, or a sanitizer found something."""
        holds = bool(self.again) and min(self.again) > 1.0 and not self.findings
        return statistics.median(self.again) if holds else 1.0


def measure_winners(
    rollouts: Sequence[Rollout], rows: Sequence[PromptRow], scorer: Scorer, directory: Path, pairs: int
) -> list[Winner]:
    """The fastest kernel of each problem that has one which was decided faster.

    Args:
        rollouts: of an evaluation.
        rows: its prompts.
        scorer: that judged them.
        directory: where each is kept; what is there is not measured again.
        pairs: of fresh processes; one where times are modelled, which do not depend on the process.

    Raises DeviceError, UsageError for a damaged file.
    """
    path, by_digest = directory / WINNERS, {row.digest: row for row in rows}
    cut_torn_line(path)
    known = {(one.problem, one.source_sha256): one for one in _read(path)}
    if scorer.judge.shared.facts.kind is DeviceKind.EMULATED:
        pairs = min(pairs, 1)
    found = []
    for problem, best in sorted(_fastest(rollouts).items()):
        winner = known.get((problem, best.source_sha256))
        row = _row_of(best, rollouts, by_digest)
        if winner is None and row is not None:
            winner = _measured(best, row, scorer, pairs)
            append_line(path, winner.model_dump_json().encode())
        if winner is not None:
            found.append(winner)
    return found


def logarithms(winners: Sequence[Winner], problems: Sequence[str]) -> list[float]:
    """Of what each problem's winner gains, 0 for problems without one."""
    gains = {one.problem: one.gain for one in winners}
    return [math.log(gains.get(problem, 1.0)) for problem in problems]


def _fastest(rollouts: Sequence[Rollout]) -> Mapping[str, Rollout]:
    """Problem -> the fastest of those that were decided faster."""
    found: dict[str, Rollout] = {}
    for one in rollouts:
        if speedup(one) > max(1.0, speedup(found[one.problem]) if one.problem in found else 1.0):
            found[one.problem] = one
    return found


def _row_of(best: Rollout, rollouts: Sequence[Rollout], rows: Mapping[str, PromptRow]) -> PromptRow | None:
    """The first prompt of its dialogue."""
    first = next((one for one in rollouts if (one.step, one.dialogue) == (best.step, best.dialogue)), best)
    return rows.get(best.prompt) or rows.get(first.prompt)


def _measured(best: Rollout, row: PromptRow, scorer: Scorer, pairs: int) -> Winner:
    source = read_completion(best.completion, row).source
    if source is None or source_digest(source) != best.source_sha256:
        raise UsageError(
            f"step {best.step} no longer names the kernel that was judged", hint="make the prompts that it was asked"
        )
    again = [scorer.compared_again(row, source, _FIRST + number) for number in range(pairs)]
    findings = scorer.judge.shared.sanitize(scorer.judge.problem(best.problem), source)
    return Winner(
        problem=best.problem,
        source_sha256=best.source_sha256,
        speedup=speedup(best),
        again=tuple(_gain(one) for one in again),
        findings=tuple(f"{one.tool}: {one.message}" for one in findings),
    )


def _gain(evaluation: Evaluation) -> float:
    found = evaluation.comparison if evaluation.correct else None
    if found is None:
        return 1.0
    return decided_speedup(evaluation.verdict, found.decision, found.speedup)


def _read(path: Path) -> list[Winner]:
    lines = complete_lines(path.read_bytes()) if path.exists() else ()
    try:
        return [Winner.model_validate_json(line.data) for line in lines]
    except ValidationError as error:
        raise UsageError(f"{path} holds a line that is none of its own", hint="it is damaged: restore it") from error
