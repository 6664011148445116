"""The edges of the two recorded searches on an H200, as far as later prompts tell what became of them.

Recordings hold prompts and replies, no evaluations. Three kinds of prompts tell outcomes: those that list what a chain
has tried, those of reflection, and those that ask to improve a kernel, which is then correct and faster than its
parent; both calls' times stand in the prompts, and their ratio is the speed-up where no line gives it. Ratios are kept
to two decimals, without intervals. Steps of which no prompt tells were judged later, with their parents
(`judge_steps.py`, `docs/results/recorded_steps.jsonl`).

Of a parent's replies the slow ones are those that nothing more is told of. A parent counts therefore only where the
outcome of every reply to it is known: else the techniques of the recorded searches would seem to gain always.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from edges import MeasuredEdge, Outcome, Refused
from parents import Parent
from rows import JudgedReply, read
from trial_edges import outcome_of

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Purpose
from kernelblaster.models.recorded import RecordedExchange, read_recording
from kernelblaster.models.replies import UnusableReply, parse_reply

JUDGED_STEPS = Path(__file__).parents[2] / "docs" / "results" / "recorded_steps.jsonl"
UNKNOWN = "what became of it was not kept"
SIBLING_UNKNOWN = "what became of another reply to its parent was not kept"
_TOLD = re.compile(
    r"^- (?:(?P<state>\w+) / )?(?P<technique>\w+): "
    r"(?:(?P<tried>faster|slower|inconclusive) (?P<ratio>[\d.]+)x, expected (?P<stated>[\d.]+)x"
    r"|expected (?P<promised>[\d.]+)x, measured (?P<measured>[\d.]+)x \((?P<decision>faster|slower|inconclusive)\))",
    re.MULTILINE,
)
_CALL = re.compile(r"Time of the call: ([\d.]+) us \(measured\)")
_SLOT = re.compile(r"/r(\d+)/rollout-(\d+)/step-(\d+)/")

_CHAIN = re.compile(r"^.*/rollout-\d+/")
_ANY_CHAIN = ""

Key = tuple[str, str, str]
"""Problem, technique, and the speed-up that the reply promised, to two decimals."""
Told = tuple[Decision, float]


@dataclass(frozen=True)
class RecordedStep:
    """A question, with the last reply to it and its repairs."""

    asked: RecordedExchange
    replies: tuple[RecordedExchange, ...]
    source: str
    stated: float | None

    @property
    def place(self) -> tuple[str, str]:
        """Tells it from others: a recording may hold two searches of a problem, and a slot twice."""
        return self.asked.slot, self.asked.digest

    @property
    def key(self) -> Key:
        """What lines tell of it."""
        stated = "" if self.stated is None else f"{self.stated:.2f}"
        return self.asked.tags["problem"], self.asked.tags["technique"], stated


def recorded_edges(path: Path, parents: Mapping[str, Parent]) -> Iterator[MeasuredEdge | Refused]:
    """Every step of a recording, or why it is none."""
    recording = read_recording(path)
    steps = recorded_steps(recording.exchanges)
    judged = {row.id: row for row in read(JUDGED_STEPS, JudgedReply)}
    outcomes = {
        step.place: told or _judged(judged.get(step_id(step)))
        for step, told in zip(steps, outcomes_of(steps, recording.exchanges).values(), strict=True)
    }
    families: defaultdict[tuple[str, str], list[RecordedStep]] = defaultdict(list)
    for step in steps:
        families[step.asked.tags["problem"], step.asked.tags["parent_sha256"]].append(step)
    when = datetime.strptime(recording.header.started, "%Y-%m-%dT%H:%M:%S%z")
    for (problem, sha256), family in families.items():
        parent = parents.get(f"{problem}/{sha256[:8]}")
        for step in family:
            outcome = outcomes[step.place]
            if outcome is None:
                yield Refused(UNKNOWN)
            elif any(outcomes[other.place] is None for other in family):
                yield Refused(SIBLING_UNKNOWN)
            elif parent is None:
                yield Refused("the profile of its parent was not kept")
            else:
                yield _edge(step, parent, outcome, recording.identity, when)


def _edge(
    step: RecordedStep,
    parent: Parent,
    outcome: Outcome,
    identity: str,
    when: datetime,
) -> MeasuredEdge:
    found = _SLOT.search(step.asked.slot)
    if found is None:
        raise ValueError(f"{step.asked.slot} is no step")
    return MeasuredEdge(
        run=f"recording-{identity}",
        slot=step_id(step),
        round=int(found[1]),
        rollout=int(found[2]),
        step=int(found[3]),
        parent=parent,
        candidate=step.source,
        asked=step.asked.tags["technique"],
        declared=(),
        stated=step.stated,
        outcome=outcome,
        model=step.asked.model,
        when=when,
        attempts=len(step.replies),
        recording=identity,
        prompt_tokens=sum(one.usage.prompt_tokens for one in step.replies),
        completion_tokens=sum(one.usage.completion_tokens for one in step.replies),
    )


def step_id(step: RecordedStep) -> str:
    """Of a row that judges it."""
    return f"{step.asked.slot}/{step.asked.digest[:8]}"


def _judged(row: JudgedReply | None) -> Outcome | None:
    try:
        return None if row is None else outcome_of(row)
    except Refused:  # the machine's failure, or a row that contradicts itself, tells nothing of the step
        return None


def recorded_steps(exchanges: Sequence[RecordedExchange]) -> list[RecordedStep]:
    """Steps whose last reply holds a kernel."""
    repairs = {one.tags["failed_sha256"]: one for one in exchanges if one.purpose is Purpose.REPAIR}
    steps = []
    for asked in exchanges:
        if asked.purpose is not Purpose.GENERATE:
            continue
        replies = [asked]
        while (repaired := repairs.get(_digest(replies[-1]))) is not None and repaired not in replies:
            replies.append(repaired)
        try:
            reply = parse_reply(replies[-1].reply)
        except UnusableReply:
            continue
        steps.append(RecordedStep(asked, tuple(replies), reply.source, reply.expected_speedup))
    return steps


def outcomes_of(
    steps: Sequence[RecordedStep], exchanges: Sequence[RecordedExchange]
) -> dict[tuple[str, str], Outcome | None]:
    """By place, what a line tells of a step, else what follows from its kernel being improved later; None for neither.

    Lines of the step's own chain come first. Lines that fit several steps, or several lines for one, tell nothing.
    """
    told, times = told_outcomes(exchanges), call_times(exchanges)
    alike: defaultdict[Key, list[str]] = defaultdict(list)
    for step in steps:
        alike[step.key].append(chain_of(step.asked))
    return {step.place: _by_lines(step, told, alike[step.key]) or _by_times(step, times) for step in steps}


def _by_lines(step: RecordedStep, told: Mapping[tuple[str, Key], set[Told]], chains: Sequence[str]) -> Outcome | None:
    """`chains` of all steps that promised as much with the same technique."""
    for chain in (chain_of(step.asked), _ANY_CHAIN):
        lines = told.get((chain, step.key), set())
        if len(lines) == 1 and sum(chain in (other, _ANY_CHAIN) for other in chains) == 1:
            ((decision, ratio),) = lines
            return Outcome(Verdict.CORRECT, speedup=ratio, decision=decision)
    return None


def _by_times(step: RecordedStep, times: Mapping[str, float]) -> Outcome | None:
    parent, made = step.asked.tags["parent_sha256"], source_digest(step.source)
    if made == parent or made not in times or parent not in times:
        return None
    return Outcome(Verdict.CORRECT, speedup=round(times[parent] / times[made], 2), decision=Decision.FASTER)


def chain_of(exchange: RecordedExchange) -> str:
    """The rollout that asked, whose prompts list what it tried; none for reflection on all of them."""
    found = _CHAIN.match(exchange.slot)
    return found[0] if found else _ANY_CHAIN


def told_outcomes(exchanges: Sequence[RecordedExchange]) -> defaultdict[tuple[str, Key], set[Told]]:
    """What lines of later prompts tell, by the chain that they speak of."""
    found: defaultdict[tuple[str, Key], set[Told]] = defaultdict(set)
    for exchange in exchanges:
        for line in _TOLD.finditer("\n".join(message.content for message in exchange.messages)):
            stated = float(line["stated"] or line["promised"])
            decision = Decision(line["tried"] or line["decision"])
            key = exchange.tags["problem"], line["technique"], f"{stated:.2f}"
            found[chain_of(exchange), key].add((decision, float(line["ratio"] or line["measured"])))
    return found


def call_times(exchanges: Sequence[RecordedExchange]) -> dict[str, float]:
    """SHA-256 of every kernel that was to be improved -> time of its call in microseconds."""
    times = {}
    for exchange in exchanges:
        shown = _CALL.search("\n".join(message.content for message in exchange.messages))
        if exchange.purpose is Purpose.GENERATE and shown is not None:
            times[exchange.tags["parent_sha256"]] = float(shown[1])
    return times


def _digest(exchange: RecordedExchange) -> str:
    try:
        return source_digest(parse_reply(exchange.reply).source)
    except UnusableReply:
        return ""
