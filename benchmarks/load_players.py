"""Clients of a loaded environment, what they submit, and a watch that ends what waits when a part is over."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from kernelblaster import KernelAction, KernelEnvironments, KernelObservation, Tier
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.environment.canaries import NO_CODE
from kernelblaster.environment.fair_queue import EnvironmentBusy
from kernelblaster.errors import KernelBlasterError, MachineError
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.self_checking import idle_launcher
from kernelblaster.problems.start import read_start
from kernelblaster.python_candidates.language import CandidateLanguage

TRITON = Path(__file__).resolve().parents[1] / "examples" / "triton"
NO_VERDICT = "error"
"""In the place of a verdict, where a step was answered with an error."""
_OVER = "the time of this part is over"
_STORED = re.compile(r", (?=mask=[^,\n]*\)$)", re.MULTILINE)
"""What comes before the mask at the end of a Triton store: there the value can be made wrong."""
_NO_MODULE = "import triton\n\nclass ModelNew(torch.nn.Module:\n"


class Way(StrEnum):
    """How clients reach the environment."""

    PROCESS = "process"
    """Sessions of this process."""
    SOCKETS = "sockets"
    """A server of this process, over websockets of 127.0.0.1."""


class PartOver(MachineError):
    """A submission was given up because the time of its part is over."""


@dataclass(frozen=True)
class Submitted:
    """What is submitted, and the verdicts that are right."""

    kind: str
    problem: str
    code: str
    tier: Tier
    right: frozenset[str]


@dataclass
class Seen:
    """What a client saw of one submission.

    Attributes:
        wall_s: from sending to receiving, waits for a turn included.
        at: monotonic seconds at which the answer came.
        stages: seconds of the judge, by stage.
        alone_s: for which the GPU was kept from others.
    """

    kind: str
    problem: str
    tier: str
    verdict: str
    reward: float | None
    wall_s: float
    at: float
    right: bool
    done: bool
    hack: bool
    speedup: float | None
    reason: str = ""
    stages: dict[str, float] = field(default_factory=dict)
    alone_s: float = 0.0


class Player(Protocol):
    """A client's session."""

    def reset(self, problem: str) -> None: ...

    def step(self, code: str, tier: Tier) -> KernelObservation: ...

    def close(self) -> None: ...


class SocketPlayer:
    """Over a websocket."""

    def __init__(self, url: str) -> None:
        from kernelblaster.environment.client import kernrl_env

        self._client = kernrl_env(url).sync()
        self._client.connect()

    def reset(self, problem: str) -> None:
        self._client.reset(problem_id=problem, max_turns=1000)

    def step(self, code: str, tier: Tier) -> KernelObservation:
        try:
            return self._client.step(KernelAction(code=code, tier=tier)).observation
        except RuntimeError as error:
            if _OVER in str(error):
                raise PartOver(_OVER) from error
            raise

    def close(self) -> None:
        self._client.close()


class LocalPlayer:
    """A session of this process."""

    def __init__(self, environments: KernelEnvironments) -> None:
        self._session = environments.session()

    def reset(self, problem: str) -> None:
        self._session.reset(problem_id=problem, max_turns=1000)

    def step(self, code: str, tier: Tier) -> KernelObservation:
        while True:
            try:
                return self._session.step(KernelAction(code=code, tier=tier))
            except EnvironmentBusy as busy:
                time.sleep(busy.retry_after_s or 1)

    def close(self) -> None:
        self._session.close()


class Watch:
    """Of an evaluator: keeps the seconds of each stage, and ends evaluations whose part is over.

    One that waits, for its turn or for the GPU, ends at once; one that holds the GPU is judged to its end.

    Attributes:
        until: monotonic seconds at which the part that runs is over.
        stopped: everything is over: the process was told to end.
        seconds: of each stage, by the digest of what was judged.
        alone_s: seconds for which each kept others from the GPU.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluate, self._hold = evaluator.evaluate, evaluator.holding
        self.until = float("inf")
        self.stopped = False
        self.seconds: dict[str, dict[str, float]] = {}
        self.alone_s: dict[str, float] = {}
        evaluator.evaluate = self.evaluate  # type: ignore[method-assign]
        evaluator.holding = self.holding  # type: ignore[method-assign,assignment]

    @property
    def over(self) -> bool:
        """Whether nothing may be begun."""
        return self.stopped or time.monotonic() >= self.until

    def check(self) -> None:
        """Raise PartOver where nothing may be begun."""
        if self.over:
            raise PartOver(_OVER)

    def evaluate(self, problem: Any, source: str, **arguments: Any) -> Evaluation:
        """As of `Evaluator`."""
        self.check()
        found = self._evaluate(problem, source, **arguments)
        self.seconds[source_digest(source)] = dict(found.seconds)
        self.alone_s[source_digest(source)] = found.alone_s
        return found

    @contextmanager
    def holding(self, *, wait: bool = True) -> Iterator[bool]:
        """As of `Evaluator`."""
        self.check()
        with self._hold(wait=wait) as held:
            self.check()
            yield held


class Load:
    """An environment, who submits to it, and what is submitted.

    Args:
        environments: what is loaded.
        url: of a server of it; None without one.
        watch: of its evaluator.
    """

    def __init__(self, environments: KernelEnvironments, url: str | None, watch: Watch) -> None:
        self.environments = environments
        self.url = url
        self.watch = watch
        self._number, self._lock = time.time_ns(), threading.Lock()

    def player(self, way: Way) -> Player:
        """A session of its own."""
        if way is Way.PROCESS or self.url is None:
            return LocalPlayer(self.environments)
        return SocketPlayer(self.url)

    @property
    def usual(self) -> Way:
        """Sockets where there are some."""
        return Way.PROCESS if self.url is None else Way.SOCKETS

    def submitted(
        self, kind: str, problem: str, tier: Tier, language: CandidateLanguage = CandidateLanguage.CUDA
    ) -> Submitted:
        """A submission that nobody has made before: `start` (right), `wrong` or `broken`."""
        with self._lock:
            self._number += 1
            number = self._number
        right = {"start": "correct", "wrong": "wrong_values", "broken": "compile_error"}[kind]
        if tier is Tier.COMPILE and kind != "broken":
            right = "built"
        text = self._python(kind, problem) if language is CandidateLanguage.TRITON else self._cuda(kind, problem)
        mark = f"\n# {number}\n" if language is CandidateLanguage.TRITON else f"\n// {number}\n"
        return Submitted(kind, problem, text + mark, tier, frozenset({right}))

    def _cuda(self, kind: str, problem: str) -> str:
        found = self.environments.catalogue.find(problem)
        if kind == "broken":
            return NO_CODE
        if kind == "start":
            return read_start(found)
        driver = found.driver_path.read_text(encoding="utf-8", errors="replace")
        return f"#include <cstdint>\n{idle_launcher(launcher_declaration(driver))}"

    def _python(self, kind: str, problem: str) -> str:
        if kind == "broken":
            return _NO_MODULE
        text = triton_modules()[problem]
        return text if kind == "start" else _STORED.sub(" + 1.0, ", text)

    def play(self, player: Player, given: Submitted) -> Seen:
        """Submit and wait for the observation, or the error in its place. Raises PartOver."""
        player.reset(given.problem)
        began = time.monotonic()
        try:
            seen = player.step(given.code, given.tier)
        except PartOver:
            raise
        except (KernelBlasterError, RuntimeError) as error:
            at = time.monotonic()
            return Seen(
                given.kind, given.problem, given.tier, NO_VERDICT, None, at - began, at, False, False, False, None,
                str(error)[:200],
            )  # fmt: skip
        at = time.monotonic()
        return Seen(
            given.kind, given.problem, given.tier, seen.verdict, seen.reward, at - began, at,
            seen.verdict in given.right, seen.done, seen.hack, seen.speedup, seen.reason[:200],
            self.watch.seconds.get(source_digest(given.code), {}),
            self.watch.alone_s.get(source_digest(given.code), 0.0),
        )  # fmt: skip

    def play_alone(self, given: Submitted) -> Seen | None:
        """Submit in a session of its own; None where the time was over first."""
        try:
            with closing(self.player(self.usual)) as player:
                return self.play(player, given)
        except PartOver:
            return None


def triton_modules() -> dict[str, str]:
    """The modules of `examples/triton`, by the short name of their problem."""
    found = {}
    for file in sorted(TRITON.glob("level*.py")):
        level, number, *_ = file.stem.split("_")
        found[f"L{level.removeprefix('level')}_{int(number)}"] = file.read_text(encoding="utf-8")
    return found


@contextmanager
def served(environments: KernelEnvironments, capacity: int) -> Iterator[str | None]:
    """The address of a server in this process; None without the extra `env`."""
    try:
        import uvicorn

        from kernelblaster.environment.server import create_app
    except ImportError as missing:
        print(f"... no sockets: {missing}", file=sys.stderr)
        yield None
        return
    server = uvicorn.Server(uvicorn.Config(create_app(environments, capacity), port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
