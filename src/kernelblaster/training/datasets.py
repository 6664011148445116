"""Data sets from replies, transitions and starts: what is kept, and the card that says what it is."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Message
from kernelblaster.problems.tags import Split
from kernelblaster.replay.transition import FAILURE_REWARD, Transition
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.prompting import as_frontend_prompt
from kernelblaster.training.rows import (
    DataRow,
    PreferenceRow,
    SftRow,
    TransitionRow,
    UnpairedRow,
    answer,
    write_rows,
)
from kernelblaster.training.sources import KnownReply, KnownResult
from kernelblaster.training.splits import Splits
from kernelblaster.training.stages import Stage
from kernelblaster.version import __version__

MOST_PER_TECHNIQUE = 4
"""Replies kept per problem and technique: more of the same teach the same."""
MOST_PAIRS = 64
"""Preferences of one problem and parent."""
CARD = ".card.json"
_PROBLEM_NAME = re.compile(r"\blevel\d{1,9}/\d{1,9}\b")
LICENCE = "Apache-2.0"


class Card(BaseModel):
    """What a data set is and what it must not be mixed with; lies beside it as `NAME.card.json`."""

    format: str = "kernelblaster-dataset-card-1"
    name: str
    about: str
    rows: int
    sha256: str
    version: str = __version__
    devices: dict[str, int]
    """Device that outcomes are of -> rows."""
    models: dict[str, int]
    origins: dict[str, int]
    problems: dict[str, int]
    verdicts: dict[str, int]
    splits: list[str]
    """All there are in it; never mix it with evaluation on these."""
    licence: str = LICENCE
    left_out: dict[str, int]
    """Why -> replies that are not in it."""


Prompt = tuple[Message, ...]


@dataclass(frozen=True)
class Asking:
    """Makes prompts that kernels could have been written to.

    Attributes:
        again: the prompt of a stage for a reply; None where it cannot be made.
        only_missing: replies that were written to a prompt keep it.
    """

    again: Callable[[KnownReply, Stage], Prompt | None]
    only_missing: bool = False


class TrainableReplies:
    """The replies that a model may be trained on, and why others were left out.

    Args:
        replies: one per kernel and parent.
        splits: of the data set; replies on problems outside `train` are left out, and those that were shown a kernel
            of one.
        known: leave out those of which nothing is known, too.
    """

    def __init__(self, replies: Iterable[KnownReply], splits: Splits, *, known: bool = True) -> None:
        self.left_out: Counter[str] = Counter()
        self.splits = splits
        self._known = known
        self.replies = [reply for reply in replies if self._usable(reply)]

    def _usable(self, reply: KnownReply) -> bool:
        entry = self.splits.of(reply.problem)
        reason = ""
        if entry is None:
            reason = "problem is not of the data set"
        elif entry.split != Split.TRAIN:
            reason = f"problem is {entry.split}"
        elif self._shows_others(reply):
            reason = "prompt shows a kernel of a problem outside train"
        elif self._known and reply.outcome is None:
            reason = "never judged"
        self.left_out[reason] += bool(reason)
        return not reason

    def _shows_others(self, reply: KnownReply) -> bool:
        """Whether a prompt names a problem that is held out: searches show fast kernels of others, by their names."""
        named = {name for message in reply.prompt for name in _PROBLEM_NAME.findall(message.content)}
        entries = (self.splits.of(name) for name in named)
        return any(entry is not None and entry.split != Split.TRAIN for entry in entries)

    def family(self, problem: str) -> str:
        """Operator family of a kept problem."""
        entry = self.splits.of(problem)
        return "" if entry is None else entry.family


def fenced(source: str) -> str:
    """A reply that holds a kernel and nothing else."""
    return f"```cuda\n{source.strip()}\n```"


def warmup_rows(kept: TrainableReplies, asking: Asking | None = None) -> list[SftRow]:
    """Correct kernels as answers: to the prompt of stage `frontend`, and of `midend` where they were faster.

    Args:
        kept: replies.
        asking: makes prompts, which are answered by the kernel alone; those that replies were written to if None.
    """
    rows: list[SftRow] = []
    seen: Counter[tuple[str, str]] = Counter()
    answered: set[tuple[str, str]] = set()
    for reply in kept.replies:
        outcome = reply.outcome
        if outcome is None or outcome.verdict is not Verdict.CORRECT:
            continue
        if reply.stage not in ("", Stage.FRONTEND) and not outcome.faster:
            continue
        seen[reply.problem, reply.technique] += 1
        if seen[reply.problem, reply.technique] > MOST_PER_TECHNIQUE:
            kept.left_out["more of one technique"] += 1
            continue
        if reply.stage:
            rows += _sft(kept, reply, Stage(reply.stage), asking)
            continue
        if (reply.problem, reply.sha256) not in answered:
            answered.add((reply.problem, reply.sha256))
            rows += _sft(kept, reply, Stage.FRONTEND, asking)
        if outcome.faster:
            rows += _sft(kept, reply, Stage.MIDEND, asking)
    return rows


def _sft(kept: TrainableReplies, reply: KnownReply, stage: Stage, asking: Asking | None) -> list[SftRow]:
    """A row, or none where its prompt cannot be made."""
    own = _own_prompt(reply, stage)
    # What a policy wrote answers what it was asked.
    keeps = bool(own) and (asking is None or asking.only_missing or bool(reply.stage))
    prompt = own if keeps or asking is None else asking.again(reply, stage)
    if not prompt:
        kept.left_out["its prompt cannot be made in this form or precision"] += 1
        return []
    outcome = reply.outcome
    speedup = outcome.speedup if outcome is not None and stage is not Stage.FRONTEND else None
    logarithm = None if speedup is None else math.log(speedup)
    whole = keeps and (bool(reply.stage) or stage is Stage.MIDEND)
    row = SftRow(
        prompt=prompt,
        completion=answer(reply.text if whole else fenced(reply.source)),
        problem=reply.problem,
        stage=stage,
        verdict=Verdict.CORRECT,
        speedup=speedup,
        source=reply.origin,
        candidate_sha256=reply.sha256,
        family=kept.family(reply.problem),
        split=Split.TRAIN,
        reward=reply.reward if reply.scheme else logarithm,
        reward_scheme=reply.scheme or ("" if logarithm is None else "log"),
    )
    return [row]


def _own_prompt(reply: KnownReply, stage: Stage) -> Prompt:
    """Of the search; a repaired kernel answers the first prompt, which did not show the failure."""
    if reply.stage or not reply.prompt:
        return reply.prompt
    return as_frontend_prompt(reply.prompt) if stage is Stage.FRONTEND else reply.prompt[:2]


def preference_rows(kept: TrainableReplies) -> list[PreferenceRow]:
    """Pairs on one problem and parent: faster against correct and not, or against wrong."""
    groups: defaultdict[tuple[str, str, str], list[KnownReply]] = defaultdict(list)
    for reply in kept.replies:
        if reply.prompt:
            groups[reply.problem, reply.parent_sha256, reply.stage].append(reply)
    return [
        PreferenceRow(
            prompt=better.prompt[:2],
            chosen=answer(better.text),
            rejected=answer(worse.text),
            chosen_reward=rank_of(better),
            rejected_reward=rank_of(worse),
            verdict=Verdict.CORRECT,
            problem=better.problem,
            source=better.origin,
            split=Split.TRAIN,
        )
        for group in groups.values()
        for better, worse in islice(filter(_is_decided, product(group, group)), MOST_PAIRS)
    ]


def _is_decided(pair: tuple[KnownReply, KnownReply]) -> bool:
    """Whether the first is known to be better: a correct kernel that was not timed may be as fast as any."""
    better, worse = pair
    untimed = worse.outcome is not None and worse.outcome.verdict is Verdict.CORRECT and worse.outcome.decision is None
    return rank_of(better) > max(rank_of(worse), 0.5) and not untimed


def rank_of(reply: KnownReply) -> float:
    """2 faster than its parent, 1 correct, 0 wrong: what is known of every reply, measured speed-up or not."""
    outcome = reply.outcome
    if outcome is None or outcome.verdict is not Verdict.CORRECT:
        return 0.0
    return 2.0 if outcome.faster else 1.0


def unpaired_rows(kept: TrainableReplies) -> list[UnpairedRow]:
    """Every reply that was timed or is wrong, wanted where it is faster than its parent."""
    return [
        UnpairedRow(
            prompt=reply.prompt[:2],
            completion=answer(reply.text),
            label=reply.outcome.faster,
            problem=reply.problem,
            verdict=reply.outcome.verdict,
            source=reply.origin,
            split=Split.TRAIN,
        )
        for reply in kept.replies
        if reply.outcome is not None
        and reply.prompt
        and (reply.outcome.decision is not None or reply.outcome.verdict is not Verdict.CORRECT)
    ]


def recorded_transitions(
    replies: Sequence[KnownReply], kept: TrainableReplies, kernels: dict[str, str]
) -> list[TransitionRow]:
    """Edges of recordings; state, lessons and counters of them are not known."""
    return [
        TransitionRow(
            problem=reply.problem,
            family=kept.family(reply.problem),
            split=Split.TRAIN,
            state="",
            technique=reply.technique,
            precision=reply.precision,
            arch="",
            device=reply.device,
            parent_sha256=reply.parent_sha256,
            candidate_sha256=reply.sha256,
            parent=kernels.get(reply.parent_sha256, ""),
            candidate=reply.source,
            lessons=(),
            verdict=reply.outcome.verdict,
            decision="" if reply.outcome.decision is None else reply.outcome.decision,
            speedup=reply.outcome.speedup,
            reward=_search_reward(reply.outcome),
            metric_deltas="{}",
            model=reply.model,
            source=reply.origin,
        )
        for reply in replies
        if reply.outcome is not None
    ]


def _search_reward(outcome: KnownResult) -> float | None:
    """As `replay.transition.reward` has it; None for a correct kernel whose speed-up is not known."""
    if outcome.verdict is not Verdict.CORRECT:
        return FAILURE_REWARD[outcome.verdict]
    if outcome.decision is Decision.INCONCLUSIVE:
        return 0.0
    return None if outcome.speedup is None else math.log(outcome.speedup)


def run_transition_rows(
    transitions: Sequence[Transition], kernels: dict[str, str], splits: Splits, origin: str
) -> list[TransitionRow]:
    """What a run has learned from, on problems to learn from."""
    rows = []
    for edge in transitions:
        entry = splits.of(edge.problem)
        if entry is None or entry.split != Split.TRAIN:
            continue
        rows.append(
            TransitionRow(
                problem=edge.problem,
                family=edge.op_family,
                split=entry.split,
                state=edge.state,
                technique=edge.technique,
                precision=edge.precision,
                arch=edge.arch,
                device=edge.device_kind,
                parent_sha256=edge.parent_sha256,
                candidate_sha256=edge.candidate_sha256 or "",
                parent=kernels.get(edge.parent_sha256, ""),
                candidate=kernels.get(edge.candidate_sha256 or "", ""),
                lessons=edge.lessons,
                verdict=edge.verdict,
                decision="" if edge.decision is None else edge.decision,
                speedup=edge.speedup,
                reward=edge.reward,
                metric_deltas=json.dumps(edge.metric_deltas, sort_keys=True),
                model=edge.model,
                source=origin,
            )
        )
    return rows


def write_dataset(path: Path, rows: Sequence[DataRow], about: str, kept: TrainableReplies) -> Card:
    """Write a data set and its card. Raises OSError."""
    sha256 = write_rows(path, rows)
    used = {(row.problem, row.source) for row in rows}
    replies = [reply for reply in kept.replies if (reply.problem, reply.origin) in used]
    card = Card(
        name=path.name,
        about=about,
        rows=len(rows),
        sha256=sha256,
        devices=dict(Counter(reply.device for reply in replies)),
        models=dict(Counter(reply.model for reply in replies)),
        origins=dict(Counter(row.source for row in rows)),
        problems=dict(sorted(Counter(row.problem for row in rows).items())),
        verdicts=dict(Counter(row.verdict for row in rows)),
        splits=sorted({row.split for row in rows}),
        left_out=dict(+kept.left_out),
    )
    write_atomically(path.with_name(path.stem + CARD), card.model_dump_json(indent=1))
    return card
