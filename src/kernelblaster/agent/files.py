"""Files of one problem's search: candidates, evaluations, replies. Content decides names; writes are atomic.

    candidates/<sha256>.cu        sources
    evaluations/<key>.json        what the judge found; the key names source, baseline, device, precision and workload
    sweeps/<key>.json             variants of a source and their times; the key as that of an evaluation
    findings/<key>.json           what the sanitizers found; the key as that of an evaluation without a baseline
    replies/<slot>.json           the request and the reply, stored before the reply is used
    questions/<slot>.json         a request that shows the knowledge base or waits for its reply, as first asked
    recall.json                   the kernel of the knowledge base that the search begins with, or that there is none
    steps/<slot>.json             the beginning of a step: bottleneck, technique, and what the prompt showed of it
    draws/r<round>/<sha256>.json  techniques that rollouts of a round have drawn for one parent, by slot
    attempts/<slot>.json          a finished step as the archive keeps it
    rollouts/<slot>.json          the result of a rollout that has ended
    lessons/r<round>-g<n>.json    lessons drawn from the pairs of a generation; of a round of chains where n is 0
    reflections/r<round>.json     what reflection on a round changed in the knowledge base

A file that exists is complete: it was written beside its place and renamed. What costs money or machine time to make
again is synced before; the rest may be lost or empty after a power cut, and is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kernelblaster.agent.archive import ArchivedAttempt
from kernelblaster.agent.outcome import RolloutResult
from kernelblaster.agent.state import BegunStep, Spent
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.evaluation.results import Evaluation, SweptVariant
from kernelblaster.knowledge.pairs import PairEffect
from kernelblaster.knowledge.schema import Core
from kernelblaster.models.base import Reply, Request, sum_dollars
from kernelblaster.storage.atomic import write_atomically

_DRAWS = TypeAdapter(dict[str, str])
_RECENT = 32
"""Evaluations and sources in memory: the parents and candidates that rollouts work on."""
_Kept = TypeVar("_Kept")
_Stored = TypeVar("_Stored", bound=BaseModel)


class StoredReply(BaseModel):
    """A reply beside the request it answers."""

    format: str = "kernelblaster-reply-1"
    request: Request
    reply: Reply


class StoredFindings(BaseModel):
    """What the sanitizers found in a candidate; none when it is clean."""

    format: str = "kernelblaster-findings-1"
    findings: list[SanitizerFinding]


class SweepPoint(BaseModel):
    """A variant of a swept source: its values, and what was found."""

    model_config = ConfigDict(frozen=True)

    values: dict[str, str]
    found: SweptVariant


class StoredSweep(BaseModel):
    """A sweep over the variants of a source, the one that the reply wrote first."""

    format: Literal["kernelblaster-sweep-1"] = "kernelblaster-sweep-1"
    points: list[SweepPoint]
    seconds: float
    """Wall time, compilation included."""
    stages: dict[str, float] = {}
    """Of it: build, inputs, time, and wait, while others used the device; empty in records of earlier versions."""


class StoredRecall(BaseModel):
    """What a search chose to begin with, before it was judged; `core` is None where there was nothing to recall."""

    format: Literal["kernelblaster-recall-1"] = "kernelblaster-recall-1"
    core: Core | None


class StoredRollout(BaseModel):
    """The result of a rollout."""

    format: Literal["kernelblaster-rollout-1"] = "kernelblaster-rollout-1"
    result: RolloutResult


class Reflection(BaseModel):
    """The outcome of the reflection on a round."""

    changes: list[str] = []
    """The knowledge base's word on each change that fitted the schema."""
    refused: list[str] = []
    """Proposals that did not fit it."""
    skipped: str = ""
    """Why there was no reflection; empty when there was."""


class DrawnLesson(BaseModel):
    """What a measured pair did to the lessons of the knowledge base."""

    model_config = ConfigDict(frozen=True)

    step: str
    """Slot of the transition."""
    state: str
    technique: str
    speedup: float
    low: float
    high: float
    effect: PairEffect
    lesson: str
    """Id; empty where a finding was refused that has none."""
    text: str
    """Of the lesson, or why the finding was refused."""


class Distillation(BaseModel):
    """The lessons drawn from the pairs of a generation."""

    format: Literal["kernelblaster-distillation-1"] = "kernelblaster-distillation-1"
    drawn: list[DrawnLesson] = []
    skipped: list[str] = []
    """One line per pair of which there is no lesson, and why."""
    spent: Spent = Spent()

    def plus(self, *, drawn: Sequence[DrawnLesson] = (), skipped: str = "", spent: Spent | None = None) -> Distillation:
        """With one more pair."""
        more = spent or Spent()
        return Distillation(
            drawn=[*self.drawn, *drawn],
            skipped=[*self.skipped, *([skipped] if skipped else [])],
            spent=Spent(
                prompt_tokens=self.spent.prompt_tokens + more.prompt_tokens,
                completion_tokens=self.spent.completion_tokens + more.completion_tokens,
                dollars=sum_dollars(self.spent.dollars, more.dollars),
            ),
        )


@dataclass(frozen=True)
class EvaluationKey:
    """Everything that makes two evaluations the same question."""

    source: str
    baseline: str | None
    device: str
    precision: str
    workload: str
    purpose: str
    """`search`, `final` for the measurement repeated after the search, `sanitize`, or `sweep`."""

    @property
    def name(self) -> str:
        """File name without its suffix."""
        text = json.dumps([self.source, self.baseline, self.device, self.precision, self.workload, self.purpose])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class ProblemFiles:
    """The directory of one problem's search. The latest evaluations (read-only) and sources stay in memory."""

    root: Path
    _recent: OrderedDict[str, Evaluation] = field(default_factory=OrderedDict, repr=False, compare=False)
    _sources: OrderedDict[str, str] = field(default_factory=OrderedDict, repr=False, compare=False)

    def candidate_path(self, sha256: str) -> Path:
        """Where a source lies."""
        return self.root / "candidates" / f"{sha256}.cu"

    def put_candidate(self, source: str) -> str:
        """Store a source; returns its SHA-256."""
        sha256 = source_digest(source)
        path = self.candidate_path(sha256)
        if not path.exists() or path.read_bytes() != source.encode():
            write_atomically(path, source, sync=False)
            self._sources.pop(sha256, None)
        return sha256

    def candidate(self, sha256: str) -> str:
        """A stored source."""
        known = self._sources.get(sha256)
        if known is None:
            known = self.candidate_path(sha256).read_text(encoding="utf-8")
            _remember(self._sources, sha256, known)
        return known

    def evaluation_path(self, name: str) -> Path:
        """Where an evaluation lies."""
        return self.root / "evaluations" / f"{name}.json"

    def put_evaluation(self, name: str, evaluation: Evaluation) -> None:
        """Store an evaluation."""
        write_atomically(self.evaluation_path(name), evaluation.model_dump_json())
        _remember(self._recent, name, evaluation)

    def evaluation(self, name: str) -> Evaluation:
        """A stored evaluation."""
        known = self._recent.get(name)
        if known is None:
            known = Evaluation.model_validate_json(self.evaluation_path(name).read_bytes())
            _remember(self._recent, name, known)
        return known

    def find_evaluation(self, name: str) -> Evaluation | None:
        """A stored evaluation, or None when there is none or another version wrote it."""
        try:
            return self.evaluation(name)
        except (FileNotFoundError, ValidationError):
            return None

    def evaluation_times(self) -> list[tuple[str, float]]:
        """Names of all stored evaluations and the Unix time at which each was written, the earliest first."""
        written = [(path.stem, path.stat().st_mtime) for path in self.evaluation_path("_").parent.glob("*.json")]
        return sorted(written, key=lambda found: found[1])

    def put_sweep(self, name: str, sweep: StoredSweep) -> None:
        """Store a sweep."""
        write_atomically(self.root / "sweeps" / f"{name}.json", sweep.model_dump_json(indent=1))

    def find_sweep(self, name: str) -> StoredSweep | None:
        """A stored sweep; None when there was none, or another version wrote it."""
        return _read(self.root / "sweeps" / f"{name}.json", StoredSweep)

    def findings_path(self, name: str) -> Path:
        """Where what the sanitizers found lies."""
        return self.root / "findings" / f"{name}.json"

    def put_findings(self, name: str, findings: list[SanitizerFinding]) -> None:
        """Store what the sanitizers found."""
        write_atomically(self.findings_path(name), StoredFindings(findings=findings).model_dump_json(indent=1))

    def find_findings(self, name: str) -> list[SanitizerFinding] | None:
        """What the sanitizers found; None when they have not run, or another version wrote it."""
        stored = _read(self.findings_path(name), StoredFindings)
        return stored.findings if stored is not None else None

    def question_path(self, slot: str) -> Path:
        """Where the wording of a question lies."""
        return self.root / "questions" / f"{slot}.json"

    def put_question(self, request: Request) -> None:
        """Store a request that is about to be asked."""
        write_atomically(self.question_path(request.slot), request.model_dump_json(indent=1))

    def find_question(self, slot: str) -> Request | None:
        """The request of a slot as it was first asked; None when it was not, or another version wrote it."""
        return _read(self.question_path(slot), Request)

    def as_asked(self, request: Request) -> Request:
        """The stored wording of this request; the request itself when the slot asked something else."""
        known = self.find_question(request.slot)
        return known if known is not None and _same_question(known, request) else request

    def reply_path(self, slot: str) -> Path:
        """Where the reply of a slot lies."""
        return self.root / "replies" / f"{slot}.json"

    def put_reply(self, request: Request, reply: Reply) -> None:
        """Store a reply beside its request."""
        stored = StoredReply(request=request, reply=reply)
        write_atomically(self.reply_path(request.slot), stored.model_dump_json(indent=1))

    def find_reply(self, request: Request) -> Reply | None:
        """The stored reply to this request; None when the slot holds none or asked something else."""
        stored = _read(self.reply_path(request.slot), StoredReply)
        return stored.reply if stored is not None and _same_question(stored.request, request) else None

    def reply_text(self, slot: str) -> str:
        """The stored reply of a slot. Raises FileNotFoundError."""
        return StoredReply.model_validate_json(self.reply_path(slot).read_bytes()).reply.text

    def draws_path(self, round: int, parent: str) -> Path:
        """Where the techniques lie that were drawn for a parent in a round."""
        return self.root / "draws" / f"r{round}" / f"{parent}.json"

    def put_draws(self, round: int, parent: str, draws: dict[str, str]) -> None:
        """Store slot -> technique; the caller holds off other writers."""
        write_atomically(self.draws_path(round, parent), json.dumps(draws, indent=1), sync=False)

    def draws(self, round: int, parent: str) -> dict[str, str]:
        """Slot -> technique drawn for a parent in a round, so far."""
        try:
            return _DRAWS.validate_json(self.draws_path(round, parent).read_bytes())
        except (FileNotFoundError, ValidationError):
            return {}

    def step_path(self, slot: str) -> Path:
        """Where the beginning of a step lies."""
        return self.root / "steps" / f"{slot}.json"

    def put_step(self, slot: str, begun: BegunStep) -> None:
        """Store the beginning of a step."""
        write_atomically(self.step_path(slot), begun.model_dump_json(indent=1), sync=False)

    def find_step(self, slot: str, parent: str) -> BegunStep | None:
        """The beginning of a step on this parent; None when it has not begun, or another version wrote it."""
        begun = _read(self.step_path(slot), BegunStep)
        return begun if begun is not None and begun.parent == parent else None

    @property
    def begun(self) -> bool:
        """Whether a step has begun."""
        return self.step_path("_").parent.exists()

    def put_recall(self, recall: StoredRecall) -> None:
        """Store what the search begins with."""
        write_atomically(self.root / "recall.json", recall.model_dump_json(indent=1))

    def find_recall(self) -> StoredRecall | None:
        """What the search begins with; None when that was not decided, or another version wrote it."""
        return _read(self.root / "recall.json", StoredRecall)

    def put_attempt(self, attempt: ArchivedAttempt) -> None:
        """Store a finished step."""
        path = self.root / "attempts" / f"{attempt.slot}.json"
        write_atomically(path, attempt.model_dump_json(indent=1), sync=False)

    def attempts(self) -> list[ArchivedAttempt]:
        """All finished steps that this version can read, by round, generation and index."""
        found = [_read(path, ArchivedAttempt) for path in (self.root / "attempts").rglob("*.json")]
        readable = [attempt for attempt in found if attempt is not None]
        return sorted(readable, key=lambda attempt: (attempt.round, attempt.generation, attempt.index))

    def rollout_path(self, slot: str) -> Path:
        """Where the result of a rollout lies."""
        return self.root / "rollouts" / f"{slot}.json"

    def put_rollout(self, slot: str, result: RolloutResult) -> None:
        """Store the result of a rollout."""
        write_atomically(self.rollout_path(slot), StoredRollout(result=result).model_dump_json(indent=1), sync=False)

    def find_rollout(self, slot: str) -> RolloutResult | None:
        """The result of a rollout; None when it has not ended, or another version wrote it."""
        stored = _read(self.rollout_path(slot), StoredRollout)
        return stored.result if stored is not None else None

    def distillation_path(self, round: int, generation: int) -> Path:
        """Where the lessons of a generation lie."""
        return self.root / "lessons" / f"r{round}-g{generation}.json"

    def put_distillation(self, round: int, generation: int, found: Distillation) -> None:
        """Store the lessons of a generation."""
        write_atomically(self.distillation_path(round, generation), found.model_dump_json(indent=1))

    def find_distillation(self, round: int, generation: int) -> Distillation | None:
        """The lessons of a generation; None when none were drawn yet, or another version wrote them."""
        return _read(self.distillation_path(round, generation), Distillation)

    def reflection_path(self, round: int) -> Path:
        """Where the outcome of a round's reflection lies."""
        return self.root / "reflections" / f"r{round}.json"

    def put_reflection(self, round: int, reflection: Reflection) -> None:
        """Store what a reflection changed."""
        write_atomically(self.reflection_path(round), reflection.model_dump_json(indent=1))

    def find_reflection(self, round: int) -> Reflection | None:
        """What a round's reflection changed; None when it has not happened."""
        try:
            return Reflection.model_validate_json(self.reflection_path(round).read_bytes())
        except FileNotFoundError:
            return None


def _read(path: Path, kind: type[_Stored]) -> _Stored | None:
    """A stored file; None when it is not there, another version wrote it, or it was cut off with the power."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _same_question(one: Request, other: Request) -> bool:
    """Whether two requests of one slot ask the same: about the same parent, technique and failure.

    Wording does not count: another version of this program words requests differently.
    """
    return (one.purpose, one.tags) == (other.purpose, other.tags)


def _remember(kept: OrderedDict[str, _Kept], name: str, value: _Kept) -> None:
    # One dictionary operation each, which threads may share.
    kept[name] = value
    if len(kept) > _RECENT:
        kept.popitem(last=False)
