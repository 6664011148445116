"""The analysis of the content trial, as docs/results/content_trial/plan.md fixes it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from arms import DONOR_INDEX, Arm
from rows import AskedPrompt, JudgedReply

SEED = 20_261_125
RESAMPLES = 20_000
MOST_PATTERNS = 14
"""Parents up to which all patterns of signs are counted."""
CORRECT = "correct"
LEVEL = 0.95
THIRD_INDEX = 2
"""Of the replies that came after the first two of each arm had been looked at."""
PAIRED_INDEX = 3
"""Of the second replies to a prompt with a donor and to the one of the knowledge arm that differs in it alone."""
SMALL = 0.03
"""An effect that would change nothing."""


@dataclass(frozen=True)
class Outcome:
    """A judged reply with what it was asked."""

    prompt: AskedPrompt
    row: JudgedReply

    @property
    def ratio(self) -> float | None:
        """ln(parent's time / its own) where it is correct and was timed."""
        timed = self.row.verdict == CORRECT and self.row.speedup is not None
        return math.log(self.row.speedup) if timed and self.row.speedup else None

    @property
    def gain(self) -> float:
        """What a search would keep: its ratio where it is faster beyond noise, else 0."""
        return self.ratio if self.row.faster and self.ratio is not None else 0.0


@dataclass(frozen=True)
class Contrast:
    """The mean over parents of one arm's gain less another's, in ln; its interval and p, None with one family."""

    name: str
    parents: int
    mean: float
    low: float | None
    high: float | None
    p: float | None


def outcomes(prompts: Sequence[AskedPrompt], rows: Sequence[JudgedReply]) -> list[Outcome]:
    """Judged replies, in the order of the prompts."""
    judged = {row.id: row for row in rows}
    return [Outcome(prompt, judged[prompt.id]) for prompt in prompts if prompt.id in judged]


def contrast(
    name: str, judged: Iterable[Outcome], one: Arm, other: Arm, *, indices: Collection[int] | None = None
) -> Contrast | None:
    """Over parents that have replies of both arms; None where none has. `indices`: those replies of each arm alone.

    Its interval resamples families and their parents; p flips the sign of each parent's difference.
    """
    gains: dict[str, dict[Arm, list[float]]] = defaultdict(lambda: defaultdict(list))
    families: dict[str, str] = {}
    for outcome in judged:
        if indices is None or outcome.prompt.reply in indices:
            gains[outcome.prompt.parent][outcome.prompt.arm].append(outcome.gain)
            families[outcome.prompt.parent] = outcome.prompt.family
    both = {parent: arms for parent, arms in gains.items() if arms[one] and arms[other]}
    if not both:
        return None
    differences = {parent: float(np.mean(arms[one]) - np.mean(arms[other])) for parent, arms in both.items()}
    mean = float(np.mean(list(differences.values())))
    low, high = family_interval(differences, families)
    return Contrast(name, len(both), mean, low, high, sign_flip_p(list(differences.values())))


def family_interval(
    differences: Mapping[str, float], families: Mapping[str, str]
) -> tuple[float, float] | tuple[None, None]:
    """Percentile interval of the mean over parents, needs two families.

    Families are drawn with replacement, and parents within each drawn family: with few families, drawing families alone
    makes intervals too narrow.
    """
    grouped: dict[str, list[float]] = defaultdict(list)
    for parent, difference in differences.items():
        grouped[families[parent]].append(difference)
    if len(grouped) < 2:
        return None, None
    random = np.random.default_rng(SEED)
    members = [np.array(one) for one in grouped.values()]
    sizes = np.array([len(one) for one in members])
    drawn = random.integers(len(members), size=(RESAMPLES, len(members)))
    sums = np.zeros(RESAMPLES)
    for family, own in enumerate(members):
        for place in range(len(members)):
            taken = np.flatnonzero(drawn[:, place] == family)
            sums[taken] += own[random.integers(len(own), size=(len(taken), len(own)))].sum(axis=1)
    means = sums / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def sign_flip_p(differences: Sequence[float]) -> float:
    """Two-sided p of the mean under flips of each difference's sign; all patterns where they are few enough."""
    values = np.array(differences)
    if len(values) <= MOST_PATTERNS:
        patterns = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
        flips = 2 * patterns - 1
        extra = 0
    else:
        flips = np.random.default_rng(SEED).choice([-1, 1], size=(RESAMPLES, len(values)))
        extra = 1  # the pattern that was observed is one of them
    means = np.abs(flips @ values)
    reached = int((means >= abs(values.sum()) - 1e-12).sum())
    return (reached + extra) / (len(means) + extra)


def holm(contrasts: Sequence[Contrast]) -> dict[str, float]:
    """Holm's adjusted p of each contrast."""
    ordered = sorted((one for one in contrasts if one.p is not None), key=lambda one: one.p or 0.0)
    adjusted, largest = {}, 0.0
    for place, one in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - place) * (one.p or 0.0)))
        adjusted[one.name] = largest
    return adjusted


def oracle(judged: Iterable[Outcome], arms: Sequence[Arm] = (Arm.FREE, Arm.KNOWLEDGE, Arm.PLACEBO)) -> float | None:
    """Mean gain of each parent's best arm over the mean of its arms, chosen by one reply and scored by the other.

    None where no parent has two replies of every arm.
    """
    table: dict[str, dict[tuple[Arm, int], float]] = defaultdict(dict)
    for outcome in judged:
        table[outcome.prompt.parent][outcome.prompt.arm, outcome.prompt.reply] = outcome.gain
    wins = []
    for gains in table.values():
        if all((arm, reply) in gains for arm in arms for reply in (0, 1)):
            for chosen_by, scored_by in ((0, 1), (1, 0)):
                best = max(gains[arm, chosen_by] for arm in arms)
                tied = [gains[arm, scored_by] for arm in arms if gains[arm, chosen_by] == best]
                wins.append(float(np.mean(tied)) - float(np.mean([gains[arm, scored_by] for arm in arms])))
    return float(np.mean(wins)) if wins else None


def render(prompts: Sequence[AskedPrompt], rows: Sequence[JudgedReply]) -> str:
    """The page. Raises ValueError for modelled rows, which are no results, and where nothing was judged."""
    if any(row.modelled for row in rows):
        raise ValueError("modelled times are no results of the trial")
    every = outcomes(prompts, rows)
    if not every:
        raise ValueError("nothing was judged yet")
    judged = [one for one in every if one.prompt.reply != PAIRED_INDEX]
    devices = ", ".join(sorted({f"{row.device}, {row.workload}" for row in rows}))
    primary = contrast("knowledge - placebo", judged, Arm.KNOWLEDGE, Arm.PLACEBO)
    secondary = [
        contrast("knowledge - free form", judged, Arm.KNOWLEDGE, Arm.FREE),
        contrast("placebo - free form", judged, Arm.PLACEBO, Arm.FREE),
        _donor("donor - knowledge, same technique", every, DONOR_INDEX, PAIRED_INDEX),
    ]
    donors = [
        _donor("donor - knowledge, first replies", every, DONOR_INDEX),
        _donor("donor - knowledge, second replies alone", every, PAIRED_INDEX),
    ]
    donor_looks = [one for one in donors if all(donors) and one is not None]
    known = [one for one in secondary if one is not None]
    third = contrast(
        "knowledge - placebo, third replies alone", judged, Arm.KNOWLEDGE, Arm.PLACEBO, indices={THIRD_INDEX}
    )
    first = [one for one in judged if one.prompt.reply != THIRD_INDEX]
    seen = contrast("knowledge - placebo, first two replies", first, Arm.KNOWLEDGE, Arm.PLACEBO)
    looks = [one for one in (seen, third) if one is not None and third is not None]
    best = oracle(judged)
    groups = {
        "tensor cores": [one for one in judged if one.prompt.tensor_cores],
        "no tensor cores": [one for one in judged if not one.prompt.tensor_cores],
        "share of attainable below 50 %": [one for one in judged if one.prompt.headroom > 2],
        "share of attainable 50 % or more": [one for one in judged if one.prompt.headroom <= 2],
    }
    apart = [contrast(name, group, Arm.KNOWLEDGE, Arm.PLACEBO) for name, group in groups.items()]
    return "\n".join(
        [
            "# Content trial: results",
            "",
            "Made by `benchmarks/content_trial/trial.py report`; what was fixed beforehand: [plan.md](plan.md).",
            f"Judged: {len(every)} of {len(prompts)} replies, on {devices}, fp16. Gains are logarithms: 0.05 is 5 %.",
            "",
            "## Arms",
            "",
            *_arm_table(every),
            "",
            "## Primary contrast",
            "",
            *_contrast_table([*([primary] if primary else []), *looks], {}),
            "",
            "## Secondary contrasts",
            "",
            *_contrast_table([*known, *donor_looks], holm(known)),
            "",
            "## Knowledge - placebo in groups named beforehand",
            "",
            *_contrast_table([one for one in apart if one is not None], {}),
            "",
            "## Oracle",
            "",
            "The best arm of each parent over the mean of its arms, chosen by one reply and scored by the other: "
            + ("not known yet." if best is None else f"{best:+.3f}."),
            *(() if best is None else ("", chosen_arms(best))),
            "",
            "## What the plan makes of it",
            "",
            reading(primary),
            "",
        ]
    )


def chosen_arms(best: float) -> str:
    """What the oracle says of choosing: it is the most that any way to choose an arm by a parent's state could gain."""
    if best >= SMALL:
        return "That is what a way to choose could gain at most."
    return (
        "Nothing, so that no way to choose among arms was studied further, and none is claimed to help. What a search "
        "asks for is chosen by `search.policy` all the same: something has to rank three hypotheses."
    )


def _donor(name: str, judged: Iterable[Outcome], *indices: int) -> Contrast | None:
    """Prompts with a donor beside those of the knowledge arm that differ in it alone."""
    return contrast(name, judged, Arm.DONOR, Arm.KNOWLEDGE, indices=indices)


def reading(primary: Contrast | None) -> str:
    """What the plan says of the primary contrast's interval, in a sentence."""
    if primary is None or primary.low is None or primary.high is None:
        return "Nothing yet: there is no interval."
    told = f"{math.expm1(primary.low):+.1%} to {math.expm1(primary.high):+.1%} of speed"
    if primary.low > 0:
        return f"The interval ({told}) lies above 0: retrieved text stays."
    if primary.high < 0 or (primary.low > -SMALL and primary.high < SMALL):
        return f"The interval ({told}) lies below 0 or within +-{SMALL:.0%}: retrieved text in its present form goes."
    return (
        f"The interval ({told}) holds 0 and reaches beyond +-{SMALL:.0%}: undecided. An effect of retrieved text, if "
        "there is one, lies within it."
    )


def _arm_table(judged: Sequence[Outcome]) -> list[str]:
    columns = ("arm", "replies", "prompt, characters", "correct", "faster", "mean gain")
    columns += ("median ratio of correct ones", "stated / measured")
    lines = [f"| {' | '.join(columns)} |"]
    lines.append("|---" * len(columns) + "|")
    for arm in Arm:
        own = [one for one in judged if one.prompt.arm is arm]
        if not own:
            continue
        ratios = [one.ratio for one in own if one.ratio is not None]
        errors = [
            math.log(one.row.stated_speedup) - one.ratio
            for one in own
            if one.ratio is not None and one.row.stated_speedup
        ]
        cells = [
            arm.value,
            str(len(own)),
            f"{np.mean([len(one.prompt.text) for one in own]):.0f}",
            f"{len(ratios) / len(own):.0%}",
            f"{sum(one.row.faster for one in own) / len(own):.0%}",
            f"{np.mean([one.gain for one in own]):+.3f}",
            f"{np.median(ratios):+.3f}" if ratios else "",
            f"{math.exp(float(np.median(errors))):.2f}" if errors else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _contrast_table(contrasts: Sequence[Contrast], adjusted: Mapping[str, float]) -> list[str]:
    lines = ["| contrast | parents | mean | 95 % interval | p | p, Holm |", "|---|---|---|---|---|---|"]
    for one in contrasts:
        interval = "" if one.low is None or one.high is None else f"{one.low:+.3f} to {one.high:+.3f}"
        p = "" if one.p is None else f"{one.p:.3f}"
        corrected = f"{adjusted[one.name]:.3f}" if one.name in adjusted else ""
        lines.append(f"| {one.name} | {one.parents} | {one.mean:+.3f} | {interval} | {p} | {corrected} |")
    return lines
