"""A model that answers through files, in OpenAI's Batch format, at its own time.

`requests-NNN.jsonl` hold what is asked, `*replies*.jsonl`, put there by whoever answers, hold what came back; a Batch
output file can be dropped in under such a name as it is. The files are the only state:

1. A request's `custom_id` is the digest of model, slot and messages, so asking again writes nothing. Once the search
   that asked is set aside (`set-aside.jsonl` holds the ids), the same request has a new id, `again-1-` and the digest,
   and what was asked or answered under the old one is left alone.
2. The first usable reply to an id counts; further ones are ignored. A result that is an error lets the request be
   written once more; after MOST_ERRORS of them the request fails.
3. A request file is closed once any reply to it was seen: whoever answers has taken it. New requests open the next.
   So they do where a request was set aside, that nobody need answer.
4. Appends are synced before `complete` says that a reply is pending, and a torn last line is cut off.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError
from kernelblaster.models.base import BadReply, Reply, ReplyPending, Request, RequestRejected
from kernelblaster.models.completion import completion_of, estimate_usage, request_body
from kernelblaster.models.digests import request_digest
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price
from kernelblaster.models.reservations import expected_usage
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line

REQUESTS_GLOB = "requests-*.jsonl"
REPLIES_GLOB = "*replies*.jsonl"
SET_ASIDE = "set-aside.jsonl"
COMPLETIONS_URL = "/v1/chat/completions"
MOST_ERRORS = 3
"""Error results after which a request is not written again."""
MOST_REQUESTS = 50_000
"""Requests in one file: the limit of OpenAI's Batch API."""
_LONGEST_ID = 64
"""Characters that every provider of batches takes; a digest has as many."""
_log = logging.getLogger(__name__)


class _RequestLine(BaseModel):
    custom_id: str
    method: str = "POST"
    url: str = COMPLETIONS_URL
    body: dict[str, Any]


class _SetAsideLine(BaseModel):
    custom_id: str


class _Response(BaseModel):
    status_code: int
    body: Any = None


class _ReplyLine(BaseModel):
    custom_id: str
    response: _Response | None = None
    error: Any = None

    def failure(self) -> str | None:
        """What the provider says went wrong; None for a usable result."""
        if self.response is None or self.error is not None:
            return f"error: {_short(self.error)}"
        if self.response.status_code != 200:
            return f"status {self.response.status_code}: {_short(self.response.body)}"
        try:
            completion_of(self.response.body).answer()
        except BadReply as error:
            return error.message
        return None


@dataclass
class _Scan:
    """What the files of an exchange say."""

    requested: dict[str, list[Path]] = field(default_factory=dict)
    """Id -> the files it was written to, one entry for each time."""
    counts: dict[Path, int] = field(default_factory=dict)
    """Request file -> its lines."""
    answers: dict[str, _ReplyLine] = field(default_factory=dict)
    """Id -> its first usable reply."""
    failures: dict[str, list[str]] = field(default_factory=dict)
    """Id -> its distinct error results."""
    notes: list[str] = field(default_factory=list)
    set_aside: set[str] = field(default_factory=set)
    """Ids of searches that were set aside."""

    def current(self, name: str) -> str:
        """The id under which a request stands now."""
        again = (f"again-{number}-{name}"[:_LONGEST_ID] for number in count(1))
        return name if name not in self.set_aside else next(one for one in again if one not in self.set_aside)

    def touched(self, path: Path) -> bool:
        """Whether someone has answered any request of a file, or need not answer one any more."""
        seen = self.answers.keys() | self.failures.keys() | self.set_aside
        return any(path in files for name, files in self.requested.items() if name in seen)

    def new_failures(self) -> Iterator[str]:
        """One line for each request that has failed since it was last written, and will be written again."""
        for name, failures in self.failures.items():
            known = name in self.requested and name not in self.set_aside
            if known and self.wants_writing(name) and len(failures) < MOST_ERRORS:
                left = MOST_ERRORS - len(failures)
                yield (
                    f"request {name[:12]} came back with {failures[-1]}; it is asked again, and given up after "
                    f"{left} more error{'' if left == 1 else 's'}"
                )

    def wants_writing(self, name: str) -> bool:
        """Whether a request was never written, or every time answered by an error."""
        return name not in self.answers and len(self.requested.get(name, [])) <= len(self.failures.get(name, []))


class ExchangeFolder:
    """The directory of a batch exchange. Several processes may share it.

    Args:
        directory: made when something is asked.
        silent: say nothing of replies that cannot be used; where another object of the process does.
    """

    def __init__(self, directory: Path, *, silent: bool = False) -> None:
        self.directory = directory
        self._silent = silent
        self._guard = threading.Lock()
        self._seen: dict[Path, tuple[int, int]] = {}
        self._scan = _Scan()
        self._told: set[str] = set()

    def answered(self) -> frozenset[str]:
        """Ids that were asked, not set aside, and have a usable reply."""
        with self._guard:
            scan = self._current()
            return frozenset(scan.answers.keys() & scan.requested.keys() - scan.set_aside)

    def asked(self) -> frozenset[str]:
        """Ids that were asked and not set aside, whether they have a reply or not."""
        with self._guard:
            scan = self._current()
            return frozenset(scan.requested.keys() - scan.set_aside)

    def outstanding(self) -> dict[str, Path]:
        """Ids that wait for a reply, with the request file that each was written to last."""
        with self._guard:
            scan = self._current()
            answered = scan.answers.keys() | scan.set_aside
            return {
                name: files[-1]
                for name, files in scan.requested.items()
                if name not in answered and len(files) > len(scan.failures.get(name, []))
            }

    def current(self, name: str) -> str:
        """The id under which a request stands: `name`, or a later one where that belongs to a search set aside."""
        with self._guard:
            return self._current().current(name)

    def set_aside(self, names: Iterable[str]) -> int:
        """Have requests asked anew, under other ids; returns how many had been asked."""
        with self._guard:
            scan = self._current()
            asked = sorted({scan.current(name) for name in names} & scan.requested.keys())
            if asked:
                self._keep_set_aside(asked)
            return len(asked)

    def _keep_set_aside(self, names: list[str]) -> None:
        path = self.directory / SET_ASIDE
        with FileLock(self.directory / ".lock"):
            cut_torn_line(path)
            for name in names:
                append_line(path, _SetAsideLine(custom_id=name).model_dump_json().encode())
        asked = "1 question is" if len(names) == 1 else f"{len(names)} questions are"
        _log.info("%s: %s set aside; what is asked again has an id that begins with again-", self.directory, asked)

    def ask(self, name: str, body: dict[str, Any]) -> _ReplyLine | Path:
        """The reply to an id, else the file in which the request now stands. Raises RequestRejected."""
        with self._guard:
            scan = self._current()
            if name in scan.answers:
                return scan.answers[name]
            failures = scan.failures.get(name, [])
            if len(failures) >= MOST_ERRORS:
                raise RequestRejected(
                    f"request {name[:12]} came back with {len(failures)} errors, the last: {failures[-1]}",
                    hint=f"mend the cause, remove its lines from {self.directory / REPLIES_GLOB} and start again",
                )
            if scan.wants_writing(name):
                self._write(_RequestLine(custom_id=name, body=body))
            return self._current().requested[name][-1]

    def _write(self, line: _RequestLine) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        with FileLock(self.directory / ".lock"):
            for path in self.directory.glob(REQUESTS_GLOB):
                cut_torn_line(path)
            append_line(self._open_file(self._current()), line.model_dump_json().encode())

    def _open_file(self, scan: _Scan) -> Path:
        last = max(scan.counts, key=_number, default=None)
        if last is not None and scan.counts[last] < MOST_REQUESTS and not scan.touched(last):
            return last
        return self.directory / f"requests-{_number(last) + 1 if last else 1:03d}.jsonl"

    def _current(self) -> _Scan:
        """The scan, anew when a file has changed."""
        globs = (REQUESTS_GLOB, REPLIES_GLOB, SET_ASIDE)
        files = sorted({path for glob in globs for path in self.directory.glob(glob)})
        seen = {path: (status.st_size, status.st_mtime_ns) for path in files for status in [path.stat()]}
        if seen != self._seen:
            self._seen, self._scan = seen, _scan(files)
            self._tell()
        return self._scan

    def _tell(self) -> None:
        """Say what cannot be used, each once."""
        notes = dict.fromkeys([*self._scan.notes, *self._scan.new_failures(), *self._strays()])
        for note in notes if not self._silent else ():
            if note not in self._told:
                _log.warning("%s", note)
        self._told.update(notes)

    def _strays(self) -> list[str]:
        """Warnings about replies to nothing that was asked: they may belong to another exchange."""
        strays = sorted((self._scan.answers.keys() | self._scan.failures.keys()) - self._scan.requested.keys())
        if not strays:
            return []
        count = f"{len(strays)} repl{'y' if len(strays) == 1 else 'ies'}"
        return [f"{self.directory}: {count} to what was not asked here, such as {strays[0]}; ignored"]


def _scan(files: list[Path]) -> _Scan:
    scan = _Scan()
    results: set[bytes] = set()
    for path in files:
        if path.match(REQUESTS_GLOB):
            _scan_requests(scan, path)
        elif path.name == SET_ASIDE:
            _scan_set_aside(scan, path)
        else:
            _scan_replies(scan, path, results)
    return scan


def _scan_requests(scan: _Scan, path: Path) -> None:
    scan.counts[path] = 0
    for line in complete_lines(path.read_bytes()):
        try:
            name = _RequestLine.model_validate_json(line.data).custom_id
        except ValidationError as error:
            raise UsageError(
                f"{path}, line {line.number}, is not a request", hint="restore the file, or move it away"
            ) from error
        scan.counts[path] += 1
        scan.requested.setdefault(name, []).append(path)


def _scan_set_aside(scan: _Scan, path: Path) -> None:
    for line in complete_lines(path.read_bytes()):
        try:
            scan.set_aside.add(_SetAsideLine.model_validate_json(line.data).custom_id)
        except ValidationError as error:
            raise UsageError(
                f"{path}, line {line.number}, names no request", hint="restore the file, or move it away"
            ) from error


def _scan_replies(scan: _Scan, path: Path, results: set[bytes]) -> None:
    # The last line of someone else's file may lack its line end and still be complete.
    for line in complete_lines(path.read_bytes() + b"\n"):
        try:
            reply = _ReplyLine.model_validate_json(line.data)
        except ValidationError as error:
            problem = error.errors(include_input=False, include_url=False)[0]
            where = "".join(f"{part}: " for part in problem["loc"])
            scan.notes.append(
                f"{path}, line {line.number}, is skipped: {where}{problem['msg']}; no request gets a reply of it"
            )
            continue
        digest = hashlib.sha256(line.data.strip()).digest()
        failure = reply.failure()
        if failure is None:
            scan.answers.setdefault(reply.custom_id, reply)
        elif digest not in results:
            scan.failures.setdefault(reply.custom_id, []).append(failure)
        results.add(digest)


def first_id(model: str, request: Request) -> str:
    """Identity of a request to a model in the files, before any search that asked it was set aside."""
    return hashlib.sha256(f"{model}\n{request_digest(request)}".encode()).hexdigest()


def _number(path: Path) -> int:
    found = re.search(r"(\d+)$", path.stem)
    return int(found[1]) if found else 0


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:200]


class BatchExchangeModel:
    """A model behind an exchange directory."""

    def __init__(self, config: ModelConfig, directory: Path, ledger: CostLedger, price: Price | None) -> None:
        self._config = config
        self._ledger = ledger
        self._price = price
        self.exchange = ExchangeFolder(directory)

    @property
    def name(self) -> str:
        """Model name as configured, and as written into the requests."""
        return self._config.name

    def answerable(self, tags: dict[str, str]) -> None:
        """Anything."""
        return None

    def custom_id(self, request: Request) -> str:
        """Identity of a request in the files."""
        return self.exchange.current(first_id(self.name, request))

    async def complete(self, request: Request) -> Reply:
        """The reply from the files. Raises ReplyPending once the request is on disk, RequestRejected, CapReached."""
        return await asyncio.to_thread(self._complete, request)

    def _complete(self, request: Request) -> Reply:
        name = self.custom_id(request)
        if name in self.exchange.answered() or self._ledger.holds(name):
            found = self.exchange.ask(name, request_body(self._config, request))
        else:
            least = estimate_usage(request, "", self._price)
            expected = expected_usage(self._ledger, request, self._price, self._config.max_completion_tokens)
            self._ledger.take(expected, least)
            try:
                found = self.exchange.ask(name, request_body(self._config, request))
                self._ledger.hold(name, expected)
            finally:
                self._ledger.give_back(expected)
        if isinstance(found, Path):
            raise ReplyPending(name, str(found))
        self._ledger.release(name)
        return self._read(request, name, found)

    def _read(self, request: Request, name: str, line: _ReplyLine) -> Reply:
        completion = completion_of(line.response.body if line.response else None)
        text = completion.answer()
        usage = completion.reported_usage(self._price) or estimate_usage(request, text, self._price)
        model = completion.model or self.name
        if not self._ledger.knows(request, name):
            self._ledger.record(request, usage, model=model, seconds=0.0, answer=name)
        return Reply(text=text, usage=usage, model=model, finish_reason=completion.finish_reason)
