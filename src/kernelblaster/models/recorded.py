"""Recordings: exchanges with a model, kept so that a search can be repeated without one.

A recording is JSON lines, plain or gzipped: a header, then one exchange per line. `RecordingModel` writes one while
it passes requests on; `RecordedModel` answers from one. An exchange matches a request of the same purpose, in this
order, the first rule that finds any deciding:

1. a repair of the same failed source (tag `failed_sha256`);
2. the same messages;
3. the same slot, parent and technique;
4. the same problem, precision, parent, technique and attempt;
5. the same problem and technique.

Rules 4 and 5 hold only for candidates and their repairs: an opinion on something else is no opinion. Within a rule an
exchange recorded in the very slot comes first, then the least used, then the same precision, then the oldest. A slot
that asks the same again gets the same reply, after a restart too: the ledger knows what was handed out.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.models.base import ChatModel, Message, NoRecordedReply, Purpose, Reply, Request, Usage
from kernelblaster.models.digests import messages_digest, request_digest
from kernelblaster.models.ledger import CostLedger
from kernelblaster.storage.bounded_io import read_bounded
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line
from kernelblaster.version import __version__

RECORDING_FORMAT: Final = "kernelblaster-recording-1"
MOST_MIB = 1024
"""Of a recording as it lies on disk."""
_ROLLOUT = re.compile(r"r\d+/rollout-\d+")
_ATTEMPT = re.compile(r"attempt-(\d+)$")


class RecordingHeader(BaseModel):
    """First line of a recording: where it comes from."""

    format: Literal["kernelblaster-recording-1"] = RECORDING_FORMAT
    made_by: str
    device: str | None = None
    """What the run measured on; None when its maker did not say."""
    model: str
    how: str
    """How the model was reached."""
    started: str
    """Local time, ISO 8601."""
    archive: bool = False
    """Whether the search that was recorded handed out its replies from an archive; earlier ones were chains."""

    @classmethod
    def now(cls, *, model: str, how: str, device: str | None = None, archive: bool = False) -> RecordingHeader:
        """Header of a recording that begins now."""
        started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        return cls(
            made_by=f"kernelblaster {__version__}",
            device=device,
            model=model,
            how=how,
            started=started,
            archive=archive,
        )


class RecordedExchange(BaseModel):
    """One question and its answer."""

    model_config = ConfigDict(frozen=True)

    slot: str
    purpose: Purpose
    tags: dict[str, str]
    digest: str
    """Of the messages."""
    messages: tuple[Message, ...]
    reply: str
    usage: Usage
    model: str
    finish_reason: str | None = None

    @property
    def attempt(self) -> str | None:
        """Number of the attempt, by tag or by slot."""
        return _attempt(self.tags, self.slot)


def _attempt(tags: dict[str, str], slot: str) -> str | None:
    found = _ATTEMPT.search(slot)
    return tags.get("attempt") or (found[1] if found else None)


@dataclass(frozen=True)
class Recording:
    """A recording as read."""

    path: Path
    header: RecordingHeader
    exchanges: tuple[RecordedExchange, ...]

    @property
    def problems(self) -> frozenset[str]:
        """Those with an exchange."""
        return frozenset(one.tags["problem"] for one in self.exchanges if "problem" in one.tags)

    def without(self, problems: frozenset[str]) -> Recording:
        """The same, but for exchanges on these problems."""
        return replace(self, exchanges=tuple(one for one in self.exchanges if one.tags.get("problem") not in problems))

    @cached_property
    def identity(self) -> str:
        """16 hexadecimal digits of what was recorded, wherever the file lies and however it is packed."""
        content = hashlib.sha256()
        for exchange in self.exchanges:
            content.update(exchange.model_dump_json().encode())
        return content.hexdigest()[:16]


def read_recording(path: Path) -> Recording:
    """Read `.jsonl` or `.jsonl.gz`; an unfinished last line is left out. Raises UsageError."""
    try:
        content = read_bounded(path, MOST_MIB)
        lines = list(complete_lines(gzip.decompress(content) if path.suffix == ".gz" else content))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="give a .jsonl or .jsonl.gz recording") from error
    number = 1
    try:
        header = RecordingHeader.model_validate_json(lines[0].data if lines else b"")
        exchanges = []
        for line in lines[1:]:
            number = line.number
            exchanges.append(RecordedExchange.model_validate_json(line.data))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"{path}, line {number}, is not of {RECORDING_FORMAT}: {where} {first['msg']}",
            hint="give a recording that `kernelblaster` has made",
        ) from error
    return Recording(path, header, tuple(exchanges))


class RecordedModel:
    """Answers from a recording. Nothing is charged: dollars are 0, tokens are those of the recording.

    Args:
        path: the recording.
        ledger: of the run.
        before: a recording that alone answers for the problems in it. Raises UsageError, as for `path`.
    """

    def __init__(self, path: Path, ledger: CostLedger, *, before: Path | None = None) -> None:
        parts = [read_recording(path)]
        if before is not None:
            first = read_recording(before)
            parts = [first, parts[0].without(first.problems)]
        self._first = parts[0]
        self._of_archives = frozenset[str]().union(*(part.problems for part in parts if part.header.archive))
        self._recording = replace(parts[-1], exchanges=tuple(one for part in parts for one in part.exchanges))
        self._ledger = ledger
        self._uses: Counter[int] = Counter()
        self._given: dict[str, int] = {}
        for call in ledger.calls:
            self._restore(call.digest, call.answer)

    @property
    def name(self) -> str:
        """`recorded` and the file."""
        return f"recorded:{self._recording.path.name}"

    @property
    def header(self) -> RecordingHeader:
        """Where the recording comes from."""
        return self._recording.header

    def of_archive(self, problem: str) -> bool:
        """Whether the search of a problem that was recorded handed out its replies from an archive."""
        return problem in self._of_archives

    def width(self, problem: str) -> int | None:
        """Replies at once that were recorded of a search by an archive; None of one by chains, or without a number."""
        if not self.of_archive(problem):
            return None
        slots = [one.slot for one in self._recording.exchanges if one.tags.get("problem") == problem]
        return len({found[0] for slot in slots if (found := _ROLLOUT.search(slot))}) or None

    @property
    def identity(self) -> str:
        """Of the recording that answers."""
        return self._recording.identity

    def answerable(self, tags: dict[str, str]) -> frozenset[str]:
        """Techniques with a recorded candidate for the parent; if there are none, for the problem and precision."""
        known = [
            exchange
            for exchange in self._recording.exchanges
            if exchange.purpose is Purpose.GENERATE and _same(exchange.tags, tags, "problem", "precision")
        ]
        of_parent = [exchange for exchange in known if _same(exchange.tags, tags, "parent_sha256")]
        return frozenset(exchange.tags["technique"] for exchange in of_parent or known if "technique" in exchange.tags)

    async def complete(self, request: Request) -> Reply:
        """The recorded answer. Raises NoRecordedReply, CapReached."""
        key = request_digest(request)
        chosen = self._given[key] if key in self._given else self._choose(request)
        exchange = self._recording.exchanges[chosen]
        usage = exchange.usage.model_copy(update={"dollars": 0.0})
        if key not in self._given:
            with self._ledger.admit(usage):
                self._given[key] = chosen
                self._uses[chosen] += 1
            self._ledger.record(
                request, usage, model=exchange.model, seconds=0.0, answer=_answer_name(chosen, exchange)
            )
        return Reply(text=exchange.reply, usage=usage, model=exchange.model, finish_reason=exchange.finish_reason)

    def _choose(self, request: Request) -> int:
        same_purpose = [
            (index, exchange)
            for index, exchange in enumerate(self._recording.exchanges)
            if exchange.purpose is request.purpose
        ]
        for rule in _rules(request):
            fitting = [(index, exchange) for index, exchange in same_purpose if rule(exchange)]
            if fitting:
                return min(fitting, key=lambda found: self._rank(request, *found))[0]
        technique = request.tags.get("technique")
        asked = f"{request.purpose} with {technique}" if technique else str(request.purpose)
        asked_of = self._first if request.tags.get("problem") in self._first.problems else self._recording
        raise NoRecordedReply(
            f"{asked_of.path.name} has no answer for {asked} at {request.slot}",
            hint="search with fewer rollouts or steps, choose a recorded problem, or set OPENAI_API_KEY",
        )

    def _rank(self, request: Request, index: int, exchange: RecordedExchange) -> tuple[bool, int, bool, int]:
        other_precision = not _same(exchange.tags, request.tags, "precision")
        used = self._uses[index]
        return (used > 0 or exchange.slot != request.slot, used, other_precision, index)

    def _restore(self, key: str, answer: str | None) -> None:
        """Recall what an earlier start handed out, if it was from this recording."""
        index = int(answer.partition(":")[0]) if answer and ":" in answer else -1
        exchanges = self._recording.exchanges
        if 0 <= index < len(exchanges) and answer == _answer_name(index, exchanges[index]):
            self._given[key] = index
            self._uses[index] += 1


def _answer_name(index: int, exchange: RecordedExchange) -> str:
    return f"{index}:{exchange.slot}:{exchange.digest[:16]}"


def _rules(request: Request) -> Iterator[Callable[[RecordedExchange], bool]]:
    tags, digest = request.tags, messages_digest(request.messages)
    if request.purpose is Purpose.REPAIR and "failed_sha256" in tags:
        yield lambda exchange: _same(exchange.tags, tags, "failed_sha256")
    yield lambda exchange: exchange.digest == digest
    yield (
        lambda exchange: (
            exchange.slot == request.slot
            and exchange.tags.get("parent_sha256") == tags.get("parent_sha256")
            and exchange.tags.get("technique") == tags.get("technique")
        )
    )
    if request.purpose in (Purpose.GENERATE, Purpose.REPAIR):
        attempt = _attempt(tags, request.slot)
        yield (
            lambda exchange: (
                _same(exchange.tags, tags, "problem", "precision", "parent_sha256", "technique")
                and exchange.attempt == attempt
            )
        )
        yield lambda exchange: _same(exchange.tags, tags, "problem", "technique")


def _same(left: dict[str, str], right: dict[str, str], *names: str) -> bool:
    """Whether both have all of these tags, with equal values."""
    return all(name in left and name in right and left[name] == right[name] for name in names)


class RecordingModel:
    """Passes requests on and adds each answered one to a recording.

    A recording that exists is continued. It is written plain, so that every exchange is safe at once; gzip it when
    it is complete. Raises UsageError for another suffix than `.jsonl` and for a file that is no recording.
    """

    def __init__(self, inner: ChatModel, path: Path, header: RecordingHeader) -> None:
        if path.suffix != ".jsonl":
            raise UsageError(f"a recording cannot be made as {path.name}", hint="name it .jsonl and gzip it afterwards")
        self._inner = inner
        self._path = path
        cut_torn_line(path)
        if path.exists() and path.stat().st_size:
            kept = read_recording(path).exchanges
        else:
            kept = ()
            append_line(path, header.model_dump_json().encode())
        self._kept = {(exchange.slot, exchange.digest) for exchange in kept}

    @property
    def name(self) -> str:
        """Of the model that is recorded."""
        return self._inner.name

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        """What the model that is recorded can answer."""
        return self._inner.answerable(tags)

    async def complete(self, request: Request) -> Reply:
        """Ask, and record the answer before it is used; the same answer is recorded once."""
        reply = await self._inner.complete(request)
        exchange = RecordedExchange(
            slot=request.slot,
            purpose=request.purpose,
            tags=request.tags,
            digest=messages_digest(request.messages),
            messages=request.messages,
            reply=reply.text,
            usage=reply.usage,
            model=reply.model,
            finish_reason=reply.finish_reason,
        )
        key = (exchange.slot, exchange.digest)
        if key not in self._kept:
            self._kept.add(key)
            append_line(self._path, exchange.model_dump_json().encode())
        return reply
