"""A judge on another machine or GPU: `kernelblaster env serve --judge` answers, `RemoteJudge` asks.

What is sent is a problem's name and the digest of its reference, a source, and what to compare it with; what comes
back is the whole evaluation, seeds of the input values among it. The server is for a trainer that one trusts, not for
the policy that it trains.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.devices.facts import DeviceFacts, Library
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.catalogue import Catalogue, problem_identifier
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.errors import DeviceError, ProblemError, UsageError
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest
from kernelblaster.version import __version__

ANSWER_S = 900.0
"""Of one evaluation, waiting for a turn included."""
FIRST_ANSWER_S = 20.0
LONGEST_PAUSE_S = 30.0
CONDITIONS, EVALUATE, SANITIZE = "/judge", "/judge/evaluate", "/judge/sanitize"
"""Routes of the server."""
_BUSY = 503
Answer = TypeVar("Answer", bound=BaseModel)


class JudgeConditions(BaseModel):
    """What a server's evaluations rest on."""

    facts: DeviceFacts
    precision: Precision
    workload: str
    libraries: list[Library]
    version: str


class SourceRequest(BaseModel):
    """A source for a problem."""

    model_config = ConfigDict(extra="forbid")

    problem: str
    reference_digest: str
    """Of the client's copy: a server with another reference refuses."""
    source: str


class EvaluationRequest(SourceRequest):
    """One evaluation; see `Judge.evaluate`."""

    baseline: str | None = None
    profile: bool = False
    tier: Tier = Tier.FULL


class SanitizerReport(BaseModel):
    """What sanitizers found; see `Judge.sanitize`."""

    findings: list[SanitizerFinding]


def conditions_of(judge: SharedJudge) -> JudgeConditions:
    """What a server tells of its judge."""
    return JudgeConditions(
        facts=judge.facts,
        precision=judge.precision,
        workload=judge.workload,
        libraries=list(judge.libraries),
        version=__version__,
    )


def answer(judge: SharedJudge, catalogue: Catalogue, asked: EvaluationRequest, session: str) -> Evaluation:
    """Judge for a client, in turn with all sessions. Raises UnknownProblem, ProblemError, DeviceError, EnvironmentBusy.

    Nothing is remembered: clients keep what they were told, and ask again where they want a second measurement.
    """
    problem = _the_same(catalogue, asked)
    return judge.evaluate_anew(
        problem, asked.source, profile=asked.profile, baseline=asked.baseline, tier=asked.tier, session=session
    )


def sanitized(judge: SharedJudge, catalogue: Catalogue, asked: SourceRequest, session: str) -> SanitizerReport:
    """What sanitizers find, for a client. Raises UnknownProblem, ProblemError, DeviceError, EnvironmentBusy."""
    return SanitizerReport(findings=list(judge.sanitize(_the_same(catalogue, asked), asked.source, session)))


def _the_same(catalogue: Catalogue, asked: SourceRequest) -> Problem:
    """The problem that a client means. Raises UnknownProblem, ProblemError where its reference is another one."""
    problem = catalogue.find(asked.problem)
    if reference_digest(problem) != asked.reference_digest:
        raise ProblemError(
            f"{asked.problem} has another reference here than where it was asked for",
            hint="use the same data set and version on both sides",
        )
    return problem


@dataclass(frozen=True)
class RemoteDevice:
    """The device of a server, of which nothing but the facts is known here."""

    facts: DeviceFacts


class RemoteJudge:
    """Judges by asking a server. Safe for many threads: each call is a connection of its own.

    Args:
        url: of the server, such as `http://127.0.0.1:8000`.
        answer_s: seconds that one evaluation may take, waiting for a turn included.

    Raises UsageError for a URL that is none, and a server of another version; DeviceError where none answers.
    """

    def __init__(self, url: str, *, answer_s: float = ANSWER_S) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r} is no address of a judge", hint="such as http://127.0.0.1:8000")
        self._url, self._answer_s = url.rstrip("/"), answer_s
        told = self._ask(CONDITIONS, None, JudgeConditions, FIRST_ANSWER_S)
        if told.version != __version__:
            raise UsageError(
                f"the judge at {url} is of version {told.version}, this is {__version__}",
                hint="install the same version on both sides",
            )
        self.precision, self.workload, self.libraries = told.precision, told.workload, tuple(told.libraries)
        self._device = RemoteDevice(told.facts)

    @property
    def device(self) -> RemoteDevice:
        """Where candidates run."""
        return self._device

    def evaluate(
        self,
        problem: Problem,
        source: str,
        *,
        baseline: str | None = None,
        profile: bool = True,
        tier: Tier = Tier.FULL,
    ) -> Evaluation:
        """The server's evaluation. Raises DeviceError where it fails or does not answer, ProblemError if it refuses."""
        asked = EvaluationRequest(
            problem=problem_identifier(problem),
            reference_digest=reference_digest(problem),
            source=source,
            baseline=baseline,
            profile=profile,
            tier=tier,
        )
        return self._insist(EVALUATE, asked, Evaluation)

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """What the server's sanitizers find. Raises DeviceError where it fails or does not answer."""
        asked = SourceRequest(
            problem=problem_identifier(problem), reference_digest=reference_digest(problem), source=source
        )
        return self._insist(SANITIZE, asked, SanitizerReport).findings

    def _insist(self, route: str, asked: BaseModel, kind: type[Answer]) -> Answer:
        """The answer of a server that may be busy at first."""
        until = time.monotonic() + self._answer_s
        while True:
            try:
                return self._ask(route, asked, kind, max(1.0, until - time.monotonic()))
            except _Busy as busy:
                if time.monotonic() + busy.pause_s > until:
                    raise
                time.sleep(busy.pause_s)

    def _ask(self, route: str, asked: BaseModel | None, kind: type[Answer], limit_s: float) -> Answer:
        body = None if asked is None else asked.model_dump_json().encode()
        request = urllib.request.Request(self._url + route, body, {"Content-Type": "application/json"})
        # Straight to the judge: a proxy that is set for the internet would not find a machine beside this one.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=limit_s) as found:
                return kind.model_validate_json(found.read())
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, ValidationError) as error:
            reason = "no evaluation came back" if isinstance(error, ValidationError) else str(error)
            raise DeviceError(
                f"the judge at {self._url} does not answer: {reason}", hint="is `kernelblaster env serve --judge` up?"
            ) from error

    def _refusal(self, error: urllib.error.HTTPError) -> DeviceError | ProblemError:
        told = _detail(error.read())
        pause = error.headers.get("Retry-After", "")
        if error.code == _BUSY and pause.isdigit():
            return _Busy(f"the judge at {self._url} is busy: {told}", min(LONGEST_PAUSE_S, float(pause)))
        if error.code == 400:
            return ProblemError(f"the judge at {self._url} refuses: {told}")
        hint = "start it with `kernelblaster env serve --judge`" if error.code == 404 else "see what the server prints"
        return DeviceError(f"the judge at {self._url} answers {error.code}: {told}", hint=hint)


class _Busy(DeviceError):
    """Too many wait; there is room after `pause_s`."""

    def __init__(self, message: str, pause_s: float) -> None:
        super().__init__(message, hint="give the server more --workers, or room for more that wait")
        self.pause_s = pause_s


def _detail(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except ValueError:
        return text[:200]
    return str(found.get("detail", text) if isinstance(found, dict) else text)[:500]
