"""A served environment under load: latency of each tier, throughput of many sessions, canaries, planted cheats.

    python benchmarks/environment_load.py --out load.json [--device cuda] [--seconds 220] [--sessions 1,8,64]

A server is started in this process on the device, and clients submit shipped kernels: starts of problems (correct), a
launcher that computes nothing (wrong) and a sentence (does not compile), each with a comment of its own, so that none
is judged before; then Triton modules of `examples/triton`, and exploits of `tests/adversarial` that are hacks. Clients
speak to it over sockets where the extra `env` is installed, else to sessions in this process; the outcome says which.

Parts that are in `--out` already are not run again, but the warm-up: with too little time for all, the exit code is 75,
and the same command goes on. Exit code 1 when a cheat is rewarded or a verdict is not the expected one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from planted import Kind, load_all

from kernelblaster import KernelAction, KernelEnvironments, KernelObservation, RunConfig, Tier, default_workers
from kernelblaster.api.environments import open_environment
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.canaries import NO_CODE, canary_problem
from kernelblaster.environment.fair_queue import EnvironmentBusy
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.self_checking import idle_launcher
from kernelblaster.problems.start import read_start
from kernelblaster.python_candidates.recording import has_triton

PROBLEMS = ("L1_19", "L1_23", "L1_26", "L1_36", "L1_40", "L1_47")
REWARD = "log"
"""A scheme with negative rewards: its lowest is below that of every honest failure."""
LOWEST = -1.0
WAITING_CODE = 75
TRITON = Path(__file__).resolve().parents[1] / "examples" / "triton"


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
        stages: seconds of the judge, by stage.
    """

    kind: str
    problem: str
    tier: str
    verdict: str
    reward: float | None
    wall_s: float
    right: bool
    done: bool
    hack: bool
    speedup: float | None
    reason: str = ""
    stages: dict[str, float] = field(default_factory=dict)


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
        return self._client.step(KernelAction(code=code, tier=tier)).observation

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


class StageWatch:
    """Keeps the seconds of each stage of what an evaluator judges."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluate = evaluator.evaluate
        self.seconds: dict[str, dict[str, float]] = {}
        evaluator.evaluate = self.evaluate  # type: ignore[method-assign]

    def evaluate(self, problem: Any, source: str, **arguments: Any) -> Evaluation:
        found = self._evaluate(problem, source, **arguments)
        self.seconds[source_digest(source)] = dict(found.seconds)
        return found


class Load:
    """A server, its clients, and what was found so far.

    Args:
        environments: what is served.
        url: of the server; None without one.
        watch: of its evaluator.
        until: monotonic seconds at which no part is begun any more.
    """

    def __init__(self, environments: KernelEnvironments, url: str | None, watch: StageWatch, until: float) -> None:
        self.environments = environments
        self.url = url
        self.watch = watch
        self.until = until
        self._number, self._lock = time.time_ns(), threading.Lock()

    def player(self) -> Player:
        """A session of its own."""
        return LocalPlayer(self.environments) if self.url is None else SocketPlayer(self.url)

    def submitted(self, kind: str, problem: str, tier: Tier) -> Submitted:
        """A submission of a kind that nobody has submitted before."""
        found = self.environments.catalogue.find(problem)
        with self._lock:
            self._number += 1
            mark = f"// {self._number}\n"
        if kind == "broken":
            return Submitted(kind, problem, NO_CODE + mark, tier, frozenset({"compile_error"}))
        if kind == "wrong":
            driver = found.driver_path.read_text(encoding="utf-8", errors="replace")
            code = f"#include <cstdint>\n{idle_launcher(launcher_declaration(driver))}\n{mark}"
            return Submitted(
                kind, problem, code, tier, frozenset({"built" if tier is Tier.COMPILE else "wrong_values"})
            )
        right = frozenset({"built" if tier is Tier.COMPILE else "correct"})
        return Submitted(kind, problem, read_start(found) + mark, tier, right)

    def play(self, player: Player, given: Submitted) -> Seen:
        """Submit and wait for the observation."""
        player.reset(given.problem)
        began = time.monotonic()
        seen = player.step(given.code, given.tier)
        wall = time.monotonic() - began
        return Seen(
            given.kind, given.problem, given.tier, seen.verdict, seen.reward, wall, seen.verdict in given.right,
            seen.done, seen.hack, seen.speedup, seen.reason[:200],
            self.watch.seconds.get(source_digest(given.code), {}),
        )  # fmt: skip

    def play_alone(self, given: Submitted) -> Seen:
        """Submit in a session of its own."""
        with closing(self.player()) as player:
            return self.play(player, given)


def warm(load: Load) -> list[Seen]:
    """One start per problem, all at once: references, inputs and harnesses are made, starts are judged."""
    with ThreadPoolExecutor(len(PROBLEMS)) as threads:
        given = [load.submitted("start", problem, Tier.QUICK) for problem in PROBLEMS]
        return list(threads.map(load.play_alone, given))


def alone(load: Load) -> list[Seen]:
    """Each tier three times, with nobody else there."""
    kinds = (("broken", Tier.QUICK), ("wrong", Tier.QUICK), *(("start", tier) for tier in Tier))
    with closing(load.player()) as player:
        return [load.play(player, load.submitted(kind, PROBLEMS[n], tier)) for kind, tier in kinds for n in range(3)]


def together(load: Load, sessions: int, seconds: float) -> dict[str, Any]:
    """Sessions that submit without a pause for so many seconds: two right kernels, two wrong ones, a broken one."""
    kinds, until = ("start", "wrong", "start", "wrong", "broken"), time.monotonic() + seconds

    def submit(number: int) -> list[Seen]:
        found: list[Seen] = []
        with closing(load.player()) as player:
            while time.monotonic() < until:
                turn = number + len(found)
                given = load.submitted(kinds[turn % len(kinds)], PROBLEMS[turn % len(PROBLEMS)], Tier.QUICK)
                found.append(load.play(player, given))
        return found

    began = time.monotonic()
    with ThreadPoolExecutor(sessions) as threads:
        played = list(threads.map(submit, range(sessions)))
    wall = time.monotonic() - began
    rows = [one for found in played for one in found]
    return {
        "sessions": sessions,
        "wall_s": wall,
        "steps": len(rows),
        "steps_per_minute": 60.0 * len(rows) / wall,
        "least_and_most_of_a_session": [min(map(len, played)), max(map(len, played))],
        "unexpected": [vars(one) for one in rows if not one.right],
        **{kind: figures([one for one in rows if one.kind == kind]) for kind in dict.fromkeys(kinds)},
    }


def triton(load: Load) -> list[Seen]:
    """The modules of `examples/triton`, a few at once; none where Triton is not installed."""
    files = sorted(TRITON.glob("level*.py")) if has_triton() else []
    given = []
    for file in files:
        level, number, *_ = file.stem.split("_")
        problem = f"L{level.removeprefix('level')}_{int(number)}"
        given.append(Submitted("triton", problem, file.read_text(encoding="utf-8"), Tier.QUICK, frozenset({"correct"})))
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(load.play_alone, given))


def cheats(load: Load, device: DeviceKind) -> list[Seen]:
    """Planted exploits that are hacks; right is what the judge calls one, and what is refused for another reason."""
    hacks = [one for one in load_all(Kind.EXPLOIT) if one.expected[device] == {"reward_hack"} and not one.libraries]
    right = frozenset({"reward_hack", "compile_error", "wrong_values", "runtime_error", "load_error", "timeout"})
    given = [Submitted(f"cheat {one.name}", one.problem, one.source, Tier.FULL, right) for one in hacks]

    def submit(one: Submitted) -> Seen | None:
        return None if time.monotonic() > load.until else load.play_alone(one)

    with ThreadPoolExecutor(8) as threads:
        return [seen for seen in threads.map(submit, given) if seen is not None]


def figures(rows: list[Seen]) -> dict[str, Any]:
    """Wall seconds, and what the judge alone took without compilers; empty without rows."""
    if not rows:
        return {}
    walls = sorted(one.wall_s for one in rows)
    beyond = [sum(one.stages.values()) - one.stages.get("build", 0.0) for one in rows if one.stages]
    return {
        "count": len(rows),
        "median_s": statistics.median(walls),
        "p95_s": walls[min(len(walls) - 1, int(0.95 * len(walls)))],
        "longest_s": walls[-1],
        "judge_without_build_median_s": statistics.median(beyond) if beyond else None,
    }


def by_kind(rows: list[Seen]) -> dict[str, Any]:
    """Figures by kind and tier, and all rows."""
    names = dict.fromkeys((one.kind, one.tier) for one in rows)
    told = {
        f"{kind} {tier}": figures([one for one in rows if (one.kind, one.tier) == (kind, tier)]) for kind, tier in names
    }
    return {"figures": told, "unexpected": [vars(one) for one in rows if not one.right], "rows": [*map(vars, rows)]}


def of_cheats(rows: list[Seen]) -> dict[str, Any]:
    """What became of the cheats."""
    hacks = [one for one in rows if one.hack]
    return {
        "submitted": len(rows),
        "called_hacks": len(hacks),
        "hacks_with_the_lowest_reward_and_the_end": sum(one.reward == LOWEST and one.done for one in hacks),
        "refused_for_another_reason": sum(not one.hack and one.verdict != "correct" for one in rows),
        "rewarded": [vars(one) for one in rows if one.verdict == "correct" and (one.reward or 0.0) > 0.0],
        "rows": [*map(vars, rows)],
    }


@contextmanager
def served(environments: KernelEnvironments) -> Iterator[str | None]:
    """The address of a server in this process; None without the extra `env`."""
    try:
        import uvicorn

        from kernelblaster.environment.server import create_app
    except ImportError as missing:
        print(f"... no sockets: {missing}", file=sys.stderr)
        yield None
        return
    server = uvicorn.Server(uvicorn.Config(create_app(environments, 128), port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def _parts(load: Load, sessions: list[int], seconds: float, device: DeviceKind) -> dict[str, Callable[[], Any]]:
    counts = {f"{count} sessions": count for count in sessions}
    return {
        "warm": lambda: by_kind(warm(load)),
        "alone": lambda: by_kind(alone(load)),
        "cheats": lambda: of_cheats(cheats(load, device)),
        **{name: lambda count=count: together(load, count, seconds) for name, count in counts.items()},
        "triton": lambda: by_kind(triton(load)),
    }


def main() -> int:
    """Run what is missing; 75 when time ran out, 1 when something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=220.0, help="after which no part is begun")
    parser.add_argument("--sessions", default="1,8,64")
    parser.add_argument("--each", type=float, default=20.0, help="seconds of each number of sessions")
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    found: dict[str, Any] = json.loads(given.out.read_text()) if given.out.is_file() else {}
    began = time.monotonic()
    config, workers = RunConfig(device=given.device), default_workers()
    with open_environment(config, reward=REWARD, canary_minutes=30.0, workers=workers, waiting=128) as environments:
        judge: SharedJudge = environments.judge
        watch = StageWatch(judge._judge._judge)  # type: ignore[attr-defined]
        found.setdefault("conditions", judge.conditions)
        found.setdefault("canaries", []).append(
            {"problem": str(canary_problem(environments.catalogue.problems).id), "right_s": time.monotonic() - began}
        )
        with served(environments) as url:
            load = Load(environments, url, watch, until)
            found |= {"workers": workers, "sockets": url is not None}
            parts = _parts(load, [int(count) for count in given.sessions.split(",")], given.each, judge.facts.kind)

            def left() -> list[str]:
                return [name for name in parts if name not in found]

            for name, run in parts.items():
                if time.monotonic() > until or (name in found and not (name == "warm" and left())):
                    continue
                print(f"... {name}", file=sys.stderr)
                found[name] = run()
                given.out.write_text(json.dumps(found, indent=1))
    wrong = [one for name in parts if name in found for one in found[name].get("unexpected", [])]
    rewarded = found.get("cheats", {}).get("rewarded", [])
    print(json.dumps({name: _short(found[name]) for name in parts if name in found}, indent=1))
    print(f"not yet: {', '.join(left()) or 'nothing'}; unexpected: {len(wrong)}; cheats rewarded: {len(rewarded)}")
    return WAITING_CODE if left() else int(bool(wrong or rewarded))


def _short(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("rows", "unexpected")}


if __name__ == "__main__":
    sys.exit(main())
