"""Replies of searches to learn from, with what is known of their kernels: from recordings and run directories.

A run directory holds evaluations. A recording holds none, yet tells two outcomes: a kernel that a later prompt shows as
the one to improve was accepted, hence correct and faster than its parent beyond noise on the recording's device; one
that a repair was asked for had failed. Of all others nothing is known until they are judged again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.agent.files import StoredReply
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.models.base import Message, Purpose
from kernelblaster.models.recorded import RecordedExchange, Recording
from kernelblaster.models.replies import UnusableReply, parse_reply
from kernelblaster.records.layout import ASIDE
from kernelblaster.replay.transition import Transition

RECORDING, RUN, TRAINING, KNOWLEDGE = "recording:", "run:", "training:", "knowledge:"
"""What the origin of a reply begins with."""
_ASKED = frozenset({Purpose.GENERATE, Purpose.REPAIR})


@dataclass(frozen=True)
class KnownResult:
    """What is known of a kernel.

    Attributes:
        verdict: of the judge.
        decision: against the kernel that the prompt shows; None unless correct and compared.
        speedup: likewise; None also where only the decision is known.
    """

    verdict: Verdict
    decision: Decision | None = None
    speedup: float | None = None

    @property
    def faster(self) -> bool:
        """Correct, and faster than its parent beyond noise."""
        return self.verdict is Verdict.CORRECT and self.decision is Decision.FASTER


@dataclass(frozen=True)
class KnownReply:
    """A reply with its kernel.

    Attributes:
        problem: its id.
        precision: it was written for.
        prompt: messages that were asked; empty where there were none.
        text: of the reply; empty without a prompt.
        source: the kernel; empty where the reply holds none.
        parent_sha256: of the kernel that the prompt shows.
        technique: that was to be tried; empty where none was named.
        model: that wrote it.
        device: that its outcome is of.
        origin: `recording:NAME`, `run:NAME`, `training:NAME` or `knowledge:NAME`.
        outcome: None where nothing is known.
        stage: whose prompt it answers; empty for a prompt of the search.
        reward, scheme: that the stage gave, and by which scheme; None and empty where there was none.
    """

    problem: str
    precision: str
    prompt: tuple[Message, ...]
    text: str
    source: str
    parent_sha256: str
    technique: str
    model: str
    device: str
    origin: str
    outcome: KnownResult | None
    stage: str = ""
    reward: float | None = None
    scheme: str = ""

    @property
    def sha256(self) -> str:
        """Of the kernel."""
        return source_digest(self.source)

    @property
    def modelled(self) -> bool:
        """Whether its outcome is of an emulated GPU."""
        return DeviceKind.EMULATED in self.device

    def with_outcome(self, outcome: KnownResult, device: str) -> KnownReply:
        """The same reply, judged again."""
        return replace(self, outcome=outcome, device=device)


def outcome_of(evaluation: Evaluation) -> KnownResult:
    """What an evaluation says of a kernel against the kernel that it was timed with."""
    found = evaluation.comparison if evaluation.correct else None
    if found is None:
        return KnownResult(evaluation.verdict)
    return KnownResult(evaluation.verdict, found.decision, found.speedup)


def recorded_replies(recording: Recording) -> list[KnownReply]:
    """Replies of a recording that propose a kernel."""
    asked = [exchange for exchange in recording.exchanges if exchange.purpose in _ASKED]
    parents = {exchange.tags.get("parent_sha256") for exchange in asked}
    failures = {
        exchange.tags["failed_sha256"]: exchange.tags["failure"]
        for exchange in asked
        if "failed_sha256" in exchange.tags
    }
    known = []
    for exchange in asked:
        source = _source(exchange.reply)
        sha256, outcome = source_digest(source), None
        if not source:
            continue
        if sha256 in failures:
            outcome = _failed(failures[sha256])
        elif sha256 in parents and sha256 != exchange.tags.get("parent_sha256"):
            outcome = KnownResult(Verdict.CORRECT, Decision.FASTER)
        known.append(_recorded(exchange, source, recording, outcome))
    return known


def run_replies(run: Path) -> list[KnownReply]:
    """Replies of every search of a run, with the evaluations that lie beside them. Raises UsageError."""
    found = []
    for directory in searches_of(run):
        outcomes = _evaluated(directory)
        for stored in _stored_replies(directory):
            source, tags = _source(stored.reply.text), stored.request.tags
            if not source:
                continue
            outcome, device = outcomes.get(source_digest(source), (None, ""))
            found.append(
                KnownReply(
                    problem=tags["problem"],
                    precision=tags["precision"],
                    prompt=stored.request.messages,
                    text=stored.reply.text,
                    source=source,
                    parent_sha256=tags.get("parent_sha256", ""),
                    technique=tags.get("technique", ""),
                    model=stored.reply.model,
                    device=device,
                    origin=f"{RUN}{run.name}",
                    outcome=outcome,
                )
            )
    return found


def searches_of(run: Path) -> list[Path]:
    """Directories of the searches of a run, but those set aside."""
    return [path for path in sorted(run.glob("level*/*")) if ASIDE not in path.name]


def run_transitions(run: Path) -> list[Transition]:
    """What the experiment of a run has learned from, each replay of a recording once. Raises KnowledgeError."""
    every = (transition.as_evidence() for transition in stored_transitions(run.parent).query())
    return list({transition.digest: transition for transition in every}.values())


def kernels_of(run: Path) -> dict[str, str]:
    """SHA-256 -> source of every kernel of a run."""
    paths = (path for directory in searches_of(run) for path in directory.glob("candidates/*.cu"))
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def once_each(replies: Iterable[KnownReply]) -> list[KnownReply]:
    """One reply per problem, kernel and parent: the first whose outcome is known, else the first."""
    found: dict[tuple[str, str, str], KnownReply] = {}
    for reply in replies:
        key = (reply.problem, reply.sha256, reply.parent_sha256)
        if key not in found or (found[key].outcome is None and reply.outcome is not None):
            found[key] = reply
    return list(found.values())


def _recorded(exchange: RecordedExchange, source: str, recording: Recording, outcome: KnownResult | None) -> KnownReply:
    return KnownReply(
        problem=exchange.tags["problem"],
        precision=exchange.tags["precision"],
        prompt=exchange.messages,
        text=exchange.reply,
        source=source,
        parent_sha256=exchange.tags.get("parent_sha256", ""),
        technique=exchange.tags.get("technique", ""),
        model=exchange.model,
        device=recording.header.device or "unknown",
        origin=f"{RECORDING}{recording.path.name}",
        outcome=outcome,
    )


def _source(reply: str) -> str:
    try:
        return parse_reply(reply).source
    except UnusableReply:
        return ""


def _failed(kind: str) -> KnownResult | None:
    """The verdict that a repair was asked for with; None for a finding that is none."""
    return KnownResult(Verdict(kind)) if kind in set(Verdict) else None


def _stored_replies(directory: Path) -> Iterator[StoredReply]:
    for path in sorted(directory.glob("replies/**/*.json")):
        try:
            stored = StoredReply.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise UsageError(f"{path} is no stored reply", hint="the run is damaged, or of another version") from error
        if stored.request.purpose in _ASKED:
            yield stored


def _evaluated(directory: Path) -> dict[str, tuple[KnownResult, str]]:
    """SHA-256 of a kernel -> its outcome and the device; one that was compared is preferred, then the newest."""
    by_source: defaultdict[str, list[tuple[bool, float, Evaluation]]] = defaultdict(list)
    for path in directory.glob("evaluations/*.json"):
        try:
            evaluation = Evaluation.model_validate_json(path.read_bytes())
        except ValidationError:
            continue  # of another version, which searches pass over, too
        written = path.stat().st_mtime
        by_source[evaluation.source_sha256].append((evaluation.comparison is not None, written, evaluation))
    best = {sha256: max(found, key=lambda one: one[:2])[2] for sha256, found in by_source.items()}
    return {sha256: (outcome_of(one), f"{one.device_name} ({one.device})") for sha256, one in best.items()}
