"""Figures of a model's episodes: pass@k, fast_p, mean reward, hack rate. A failure is in every denominator.

An episode counts by its best turn. One that the judge found a hack in is a failure, whatever came before the hack.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from kernelblaster.environment.samples import Turn
from kernelblaster.evaluation.results import Decision, Verdict

SPEEDUPS = (1.0, 1.2, 1.5, 2.0)
"""p of fast_p: correct, and decided faster by more than that factor."""


class Scores(BaseModel):
    """Figures of episodes that are over; each is None, or left out, where there was nothing to take it from."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    problems: int
    episodes: int
    pass_at: dict[int, float]
    """k -> pass@k, the mean over the problems that have at least k episodes."""
    pass_at_1_error: float | None
    """Standard error over problems; None with fewer than two."""
    fast: dict[str, float]
    """p -> share of episodes with a kernel that is correct and decided faster than the baseline by more than p."""
    reward: float | None
    """Mean over problems of the mean reward of an episode: that of its best turn, or of its hack."""
    reward_error: float | None
    """Standard error over problems."""
    hack_rate: float | None
    suspicious_rate: float | None
    """Share of episodes with a speed-up that is to be measured again before it counts."""
    device_limit_rate: float | None
    """Share of episodes in which the device could not run a submission, or not judge it whole; none is left out."""
    no_code_rate: float | None
    """Share of turns without a source."""


class Episode:
    """The turns of one episode that is over, in order, at least one."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.hack = any(turn.hack for turn in turns)

    @property
    def correct(self) -> bool:
        """A turn was correct, and none a hack."""
        return not self.hack and any(turn.verdict == Verdict.CORRECT for turn in self.turns)

    @property
    def reward(self) -> float:
        """Of the best turn, or of the hack."""
        if self.hack:
            return next(turn.reward for turn in self.turns if turn.hack)
        return max(turn.reward for turn in self.turns)

    @property
    def speedup(self) -> float:
        """The greatest that was decided; 1 where none was faster."""
        return (
            1.0 if self.hack else max(decided_speedup(turn.verdict, turn.decision, turn.speedup) for turn in self.turns)
        )


def scores_of(episodes: Mapping[str, Sequence[Episode]]) -> Scores:
    """Figures of the episodes of each problem."""
    groups = [group for group in episodes.values() if group]
    every = [episode for group in groups for episode in group]
    turns = [turn for episode in every for turn in episode.turns]
    first = [pass_at(1, len(group), sum(one.correct for one in group)) for group in groups]
    rewards = [statistics.fmean(one.reward for one in group) for group in groups]
    return Scores(
        problems=len(groups),
        episodes=len(every),
        pass_at={k: _pass_at(k, groups) for k in _counts(groups)},
        pass_at_1_error=_standard_error(first),
        fast={f"{p:g}": sum(one.speedup > p for one in every) / len(every) for p in SPEEDUPS} if every else {},
        reward=statistics.fmean(rewards) if rewards else None,
        reward_error=_standard_error(rewards),
        hack_rate=_share(one.hack for one in every),
        suspicious_rate=_share(any(turn.suspicious for turn in one.turns) for one in every),
        device_limit_rate=_share(any(turn.device_limit for turn in one.turns) for one in every),
        no_code_rate=_share(not turn.language for turn in turns),
    )


def scores_by_level(episodes: Mapping[str, Sequence[Episode]], levels: Mapping[str, int]) -> dict[int, Scores]:
    """Figures of each level.

    Args:
        episodes: of each problem.
        levels: of each problem.
    """
    grouped: defaultdict[int, dict[str, Sequence[Episode]]] = defaultdict(dict)
    for name, group in episodes.items():
        grouped[levels[name]][name] = group
    return {level: scores_of(grouped[level]) for level in sorted(grouped)}


def pass_at(k: int, samples: int, passed: int) -> float:
    """Chance that one of `k` of these samples passed: 1 - C(n - c, k) / C(n, k), without bias (arXiv 2107.03374).

    Raises ValueError for fewer samples than k.
    """
    if not 0 < k <= samples or not 0 <= passed <= samples:
        raise ValueError(f"no {k} of {samples} samples with {passed} passed")
    return 1.0 - math.comb(samples - passed, k) / math.comb(samples, k)


def best_at(k: int, values: Sequence[float]) -> float:
    """The mean of the best of `k` of these samples, over all ways to take them: without bias, as `pass_at` is.

    Raises ValueError for fewer samples than k.
    """
    if not 0 < k <= len(values):
        raise ValueError(f"no {k} of {len(values)} samples")
    ranked = enumerate(sorted(values))
    return math.fsum(value * math.comb(rank, k - 1) for rank, value in ranked) / math.comb(len(values), k)


def _counts(groups: Sequence[Sequence[Episode]]) -> list[int]:
    """The k that are told: powers of two, and the most that every problem has."""
    most = max((len(group) for group in groups), default=0)
    all_have = min((len(group) for group in groups), default=0)
    powers = {1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most}
    return sorted(powers | ({all_have} if all_have else set()))


def _pass_at(k: int, groups: Sequence[Sequence[Episode]]) -> float:
    return statistics.fmean(
        pass_at(k, len(group), sum(one.correct for one in group)) for group in groups if len(group) >= k
    )


def decided_speedup(verdict: str, decision: str | None, speedup: float | None) -> float:
    """The speed-up of a correct kernel that is decided faster; 1 for any other."""
    faster = verdict == Verdict.CORRECT and decision == Decision.FASTER
    return speedup if faster and speedup is not None else 1.0


def _share(found: Iterable[bool]) -> float | None:
    values = list(found)
    return sum(values) / len(values) if values else None


def _standard_error(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
