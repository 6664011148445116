"""An evaluation as the text that an agent reads before its next submission.

Sections in the order of the stages, each bounded, the whole at most `MOST_CHARACTERS`. What a candidate or a tool over
its source has written stands in a fence that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kernelblaster.agent.sources import cut_middle
from kernelblaster.agent.summary import profile_summary, time_summary
from kernelblaster.environment.rewards import NOT_BUILT, Reward
from kernelblaster.environment.sanitizing import ToldFinding
from kernelblaster.evaluation.results import ErrorFigures, Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.knowledge.decisions import Classification

MOST_CHARACTERS = 6000
LOG_CHARACTERS = 2400
_PROFILE_CHARACTERS = 1400
_REASON_CHARACTERS = 400
_LINES_SHOWN = 5
_LINE_CHARACTERS = 160
_ERROR_LINE = re.compile(
    r"\bcandidate\.(?:(?:cu|py)[(:](?P<line>\d{1,7})\)?:? (?:fatal )?error|py\", line (?P<python_line>\d{1,7}))"
)


def feedback(
    evaluation: Evaluation,
    source: str,
    bottleneck: Classification | None,
    reward: Reward,
    *,
    against: str = "the start",
    sanitizers: Sequence[ToldFinding] | None = None,
) -> str:
    """The text, at most MOST_CHARACTERS.

    Args:
        evaluation: of the submission.
        source: that was judged.
        bottleneck: what limits it; None where that is unknown.
        reward: that it got.
        against: what its speed-up is against.
        sanitizers: what they found; None where they did not run.
    """
    text = "\n\n".join(
        f"## {title}\n{body}" for title, body in _sections(evaluation, source, bottleneck, reward, against, sanitizers)
    )
    return text if len(text) <= MOST_CHARACTERS else cut_middle(text, MOST_CHARACTERS - 100)


def fenced(text: str) -> str:
    """Text as data: between fences longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _sections(
    evaluation: Evaluation,
    source: str,
    bottleneck: Classification | None,
    reward: Reward,
    against: str,
    sanitizers: Sequence[ToldFinding] | None,
) -> Iterator[tuple[str, str]]:
    yield "Compile", _compile(evaluation, source)
    if evaluation.verdict not in NOT_BUILT and evaluation.verdict is not Verdict.BUILT:
        yield "Correctness", _correctness(evaluation)
    if sanitizers is not None:
        yield "Sanitizers", _sanitizers(sanitizers)
    if evaluation.correct:
        yield "Time", _time(evaluation, against)
        if evaluation.profile is not None:
            yield "Profile", _profile(evaluation, bottleneck)
    yield "Reward", _reward(reward)


def _compile(evaluation: Evaluation, source: str) -> str:
    if evaluation.verdict is Verdict.BUILT:
        return "Built, and not run: it was judged at the tier `compile`."
    if evaluation.verdict not in NOT_BUILT:
        return "Built."
    offending = _offending_lines(evaluation.log, source)
    return "\n".join([_refusal(evaluation), *(["Lines with errors:", fenced(offending)] if offending else [])])


def _offending_lines(log: str, source: str) -> str:
    """The first lines of the source that the compiler complains of, with their numbers."""
    lines = source.split("\n")
    numbers = dict.fromkeys(int(match["line"] or match["python_line"]) for match in _ERROR_LINE.finditer(log))
    shown = [number for number in numbers if 0 < number <= len(lines)][:_LINES_SHOWN]
    return "\n".join(f"{number}: {lines[number - 1][:_LINE_CHARACTERS]}" for number in shown)


def _correctness(evaluation: Evaluation) -> str:
    if evaluation.correct:
        return f"Correct on {len(evaluation.errors)} sets of inputs."
    lines = [_refusal(evaluation)]
    failed = [figures for figures in evaluation.errors if not figures.passed]
    if failed and evaluation.verdict is Verdict.WRONG_VALUES:
        lines.append(_worst(failed[-1]))
    return "\n".join(lines)


def _worst(figures: ErrorFigures) -> str:
    where = "" if figures.worst_index is None else f" at {list(figures.worst_index)}"
    told = (
        ""
        if figures.expected is None or figures.got is None
        else f": expected {figures.expected:.6g}, got {figures.got:.6g}"
    )
    return (
        f"Worst element of {figures.tensor}{where}{told}; {figures.budget_ratio:.3g} times its error budget "
        f"(inputs {figures.distribution}, size {figures.workload})."
    )


def _sanitizers(findings: Sequence[ToldFinding]) -> str:
    """As data, for names that the candidate chose are in them."""
    return fenced("\n".join(one.text for one in findings)) if findings else "They found nothing in one call."


def _time(evaluation: Evaluation, against: str) -> str:
    if evaluation.tier is Tier.CORRECT:
        return "Not timed: it was judged at the tier `correct`."
    lines = [time_summary(evaluation), _spread(evaluation)]
    found = evaluation.comparison
    if found is not None:
        lines.append(
            f"Against {against}: {found.speedup:.3f}x [{found.low:.3f}, {found.high:.3f}], {found.decision} "
            f"(baseline {found.baseline.median_us:.2f} us; at least {100 * found.threshold:.0f} % counts)."
        )
    return "\n".join(line for line in lines if line)


def _spread(evaluation: Evaluation) -> str:
    """How well a measured time is known; empty for a model's, which is the same each time."""
    timing = evaluation.timing
    if timing is None or timing.modelled:
        return ""
    return f"Its median lies in [{timing.low_us:.2f}, {timing.high_us:.2f}] us (95 %), over {timing.samples} calls."


def _profile(evaluation: Evaluation, bottleneck: Classification | None) -> str:
    lines = cut_middle(profile_summary(evaluation), _PROFILE_CHARACTERS)
    if bottleneck is None:
        return lines
    because = f": {bottleneck.evidence[0]}" if bottleneck.evidence else ""
    return f"Limited by {bottleneck.state} (confidence {bottleneck.confidence:.2f}){because}\n{lines}"


def _reward(reward: Reward) -> str:
    parts = ", ".join(f"{name} {value:.3f}" for name, value in reward.parts.items())
    told = f"{reward.value:.3f} ({parts})"
    return f"{told}. The judge was tampered with: the episode is over." if reward.hack else told


def _refusal(evaluation: Evaluation) -> str:
    """The verdict; as data, for a candidate's words may be in them, the judge's line and the log."""
    reason, log = " ".join(evaluation.reason.split()), evaluation.log.strip()
    said = [cut_middle(reason, _REASON_CHARACTERS)] if reason not in log else []
    said += [cut_middle(log, LOG_CHARACTERS)] if log else []
    return f"{evaluation.verdict}:\n{fenced(chr(10).join(said))}"
