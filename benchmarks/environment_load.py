"""An environment under load: latency of each tier, throughput of many sessions, canaries, planted cheats.

    python benchmarks/environment_load.py --out load.json [--device cuda] [--sessions 1,8,64] [--seconds 20]
    python benchmarks/environment_load.py --out load.json --parts load --sessions 64,8 --seconds 15 --in-all 140

A server is started in this process on the device, and clients submit shipped kernels: starts of problems (correct), a
launcher that computes nothing (wrong) and a sentence (does not compile), and the same of the Triton modules in
`examples/triton`, each with a comment of its own, so that none is judged before; then exploits of `tests/adversarial`
that are hacks. `gpu_alone` are the seconds for which a submission kept others from the GPU, waiting not included; their
sum over the wall time is the share that is used, and one over their mean bounds how many are judged a second. Each
number of sessions submits without a pause for `--seconds`: CUDA, then Triton, by sessions of this process and then over
sockets, in the order in which numbers, `--ways` and `--languages` are named. When the time of a part is over, what
waits is given up and counted as unanswered. Sockets need the extra `env`, Triton modules `triton`; parts that lack
theirs are left out, and said to be.

Each part is in `--out` as soon as it has ended, and is not run again, but for the warm-up; SIGINT and SIGTERM end the
part that runs, whose answers so far are then kept under `interrupted`. Exit code 75 while parts are missing: the same
command goes on. Exit code 1 when a cheat is rewarded or a verdict is not the expected one.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from load_players import Load, PartOver, Seen, Submitted, Watch, Way, served, triton_modules
from planted import Kind, load_all

from kernelblaster import EvaluationConfig, RunConfig, Tier, default_workers
from kernelblaster.api.environments import open_environment
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.canaries import canary_problem
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.python_candidates.recording import has_triton
from kernelblaster.storage.atomic import write_atomically

PROBLEMS = ("L1_19", "L1_23", "L1_26", "L1_36", "L1_40", "L1_47")
"""Each has a Triton module, too."""
KINDS = ("start", "wrong", "start", "wrong", "broken")
"""What a session submits, in turns."""
REWARD = "log"
"""A scheme with negative rewards: its lowest is below that of every honest failure."""
LOWEST = -1.0
WAITING_CODE = 75
WARM = "warm"
PARTS = ("alone", "cheats", "load", "triton")


def told(text: str) -> None:
    """Progress, at once."""
    print(f"... {text}", file=sys.stderr, flush=True)


def warm(load: Load, *, python: bool) -> list[Seen]:
    """One start per problem, all at once: references, inputs and harnesses are made, starts are judged.

    Args:
        load: what is warmed.
        python: begin with Triton modules, too, so that recorders wait.
    """
    given = [load.submitted("start", problem, Tier.QUICK) for problem in PROBLEMS]
    given += [load.submitted("start", one, Tier.QUICK, CandidateLanguage.TRITON) for one in PROBLEMS[:2] if python]
    return _each_alone(load, given, len(given))


def alone(load: Load) -> list[Seen]:
    """Each tier three times, with nobody else there."""
    kinds = (("broken", Tier.QUICK), ("wrong", Tier.QUICK), *(("start", tier) for tier in Tier))
    found: list[Seen] = []
    with closing(load.player(load.usual)) as player:
        for kind, tier in kinds:
            for problem in PROBLEMS[:3]:
                try:
                    found.append(load.play(player, load.submitted(kind, problem, tier)))
                except PartOver:
                    return found
    return found


def _each_alone(load: Load, given: list[Submitted], at_once: int) -> list[Seen]:
    with ThreadPoolExecutor(at_once) as threads:
        return [seen for seen in threads.map(load.play_alone, given) if seen is not None]


@dataclass(frozen=True)
class Crowd:
    """Sessions that submit without a pause: two right kernels, two wrong ones, a broken one.

    Attributes:
        sessions: at once.
        language: of what they submit.
        way: how they reach the environment.
        seconds: for so long.
    """

    sessions: int
    language: CandidateLanguage
    way: Way
    seconds: float

    @property
    def name(self) -> str:
        """Of the part."""
        return f"{self.sessions} sessions, {self.language}, {self.way}"

    def run(self, load: Load) -> dict[str, Any]:
        """Let them submit; what was answered in time, and how many still waited at the end."""
        began, lock = time.monotonic(), threading.Lock()
        until = min(load.watch.until, began + self.seconds)
        waiting: dict[int, float] = {}
        played: dict[int, list[Seen]] = {number: [] for number in range(self.sessions)}

        def submit(number: int) -> None:
            with closing(load.player(self.way)) as player:
                while not load.watch.over:
                    turn = number + len(played[number])
                    problem = PROBLEMS[turn % len(PROBLEMS)]
                    given = load.submitted(KINDS[turn % len(KINDS)], problem, Tier.QUICK, self.language)
                    with lock:
                        waiting[number] = time.monotonic()
                    try:
                        seen = load.play(player, given)
                    except PartOver:
                        return
                    if seen.at > until:
                        return
                    with lock:
                        del waiting[number]
                        played[number].append(seen)

        load.watch.until, before = until, load.watch.until
        done = threading.Event()
        teller = threading.Thread(target=self._tell, args=(done, played, began), daemon=True)
        teller.start()
        try:
            with ThreadPoolExecutor(self.sessions) as threads:
                list(threads.map(submit, range(self.sessions)))
        finally:
            done.set()
            load.watch.until = before
        ended = min(until, time.monotonic())
        ages = [max(0.0, ended - since) for since in waiting.values()]
        return {**self._outcome(played, ended - began), **_unanswered(ages)}

    def _tell(self, done: threading.Event, played: dict[int, list[Seen]], began: float) -> None:
        while not done.wait(5.0):
            told(f"{self.name}: {sum(map(len, played.values()))} answers after {time.monotonic() - began:.0f} s")

    def _outcome(self, played: dict[int, list[Seen]], wall_s: float) -> dict[str, Any]:
        rows = [one for found in played.values() for one in found]
        counts = [len(found) for found in played.values()]
        return {
            "sessions": self.sessions,
            "language": self.language,
            "way": self.way,
            "wall_s": wall_s,
            "answered": len(rows),
            "answered_per_minute": 60.0 * len(rows) / wall_s,
            "gpu_alone_share": sum(one.alone_s for one in rows) / wall_s,
            "least_and_most_of_a_session": [min(counts), max(counts)],
            "unexpected": [vars(one) for one in rows if not one.right],
            **{kind: figures([one for one in rows if one.kind == kind]) for kind in dict.fromkeys(KINDS)},
        }


def _unanswered(ages: list[float]) -> dict[str, Any]:
    """Submissions that had no answer when the part was over; the longest is a lower bound of how long one takes."""
    return {"unanswered": len(ages), "longest_unanswered_s": max(ages, default=None)}


def triton(load: Load) -> list[Seen]:
    """The modules of `examples/triton`, a few at once."""
    right = frozenset({"correct"})
    given = [Submitted("triton", problem, text, Tier.QUICK, right) for problem, text in triton_modules().items()]
    return _each_alone(load, given, 4)


def cheats(load: Load, device: DeviceKind) -> list[Seen]:
    """Planted exploits that are hacks; right is what the judge calls one, and what is refused for another reason."""
    hacks = [one for one in load_all(Kind.EXPLOIT) if one.expected[device] == {"reward_hack"} and not one.libraries]
    right = frozenset({"reward_hack", "compile_error", "wrong_values", "runtime_error", "load_error", "timeout"})
    given = [Submitted(f"cheat {one.name}", one.problem, one.source, Tier.FULL, right) for one in hacks]
    return _each_alone(load, given, 8)


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
        "gpu_alone_median_s": statistics.median(one.alone_s for one in rows),
    }


def by_kind(rows: list[Seen]) -> dict[str, Any]:
    """Figures by kind and tier, and all rows."""
    names = dict.fromkeys((one.kind, one.tier) for one in rows)
    found = {
        f"{kind} {tier}": figures([one for one in rows if (one.kind, one.tier) == (kind, tier)]) for kind, tier in names
    }
    return {"figures": found, "unexpected": [vars(one) for one in rows if not one.right], "rows": [*map(vars, rows)]}


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


@dataclass(frozen=True)
class Part:
    """What is run and kept under a name.

    Attributes:
        run: gives what is kept.
        least_s: with less time left it is not begun.
    """

    run: Callable[[], dict[str, Any]]
    least_s: float = 0.0


def _parts(load: Load, given: argparse.Namespace, device: DeviceKind) -> dict[str, Part]:
    """What is run, by name and in order: the warm-up, then what was asked for and can be had."""
    languages = [CandidateLanguage(one) for one in given.languages.split(",")]
    ways = [Way(one) for one in given.ways.split(",")]
    python = has_triton()
    if not python and CandidateLanguage.TRITON in languages:
        told("no Triton here: its parts are left out")
    crowds = [
        Crowd(int(count), language, way, given.seconds)
        for count in given.sessions.split(",")
        for way in ways
        for language in languages
        if (python or language is CandidateLanguage.CUDA) and (load.url is not None or way is Way.PROCESS)
    ]
    asked = {
        "alone": {"alone": Part(lambda: by_kind(alone(load)))},
        "cheats": {"cheats": Part(lambda: of_cheats(cheats(load, device)))},
        "load": {crowd.name: Part(partial(crowd.run, load), crowd.seconds) for crowd in crowds},
        "triton": {"triton": Part(lambda: by_kind(triton(load)))} if python else {},
    }
    modules = python and CandidateLanguage.TRITON in languages
    return {
        WARM: Part(lambda: by_kind(warm(load, python=modules))),
        **{name: part for group in given.parts.split(",") for name, part in asked[group].items()},
    }


class Found:
    """What was found, kept in a file as soon as a part has ended.

    Args:
        path: of the file; what it holds is gone on with.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.parts: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
        self.parts.pop("interrupted", None)

    def keep(self, **parts: Any) -> None:
        """Add, and write all."""
        self.parts |= parts
        write_atomically(self._path, json.dumps(self.parts, indent=1))


def run_parts(parts: dict[str, Part], found: Found, watch: Watch, until: float) -> list[str]:
    """Warm up and run what is missing until time is over; names of what is missing then."""
    missing = [name for name in parts if name != WARM and name not in found.parts]
    cut: dict[str, Any] = {}
    for name in [WARM, *missing] if missing else []:
        if watch.stopped or time.monotonic() + parts[name].least_s > until:
            continue
        told(name)
        began, watch.until = time.monotonic(), until
        outcome = parts[name].run()
        told(f"{name}: {'cut' if watch.over else 'done'} after {time.monotonic() - began:.1f} s")
        if watch.over:
            cut[name] = outcome
            found.keep(interrupted=cut)
        else:
            found.keep(**{name: outcome})
    return [name for name in missing if name not in found.parts]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--parts", default=",".join(PARTS), help="in this order, after the warm-up")
    parser.add_argument("--sessions", default="1,8,64", help="of the part `load`, in this order")
    parser.add_argument("--languages", default="cuda,triton")
    parser.add_argument("--ways", default="process,sockets")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part of `load`")
    parser.add_argument("--in-all", type=float, default=600.0, help="seconds after which nothing is judged any more")
    parser.add_argument(
        "--in-company", action="store_true", help="verify submissions beside others; alone they are timed"
    )
    parser.add_argument("--no-canaries", action="store_true", help="begin without the three known verdicts")
    given = parser.parse_args()
    if unknown := set(given.parts.split(",")) - {*PARTS}:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return given


def main() -> int:
    """Run what is missing; 75 when something still is, 1 when something is not as it must be."""
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(WAITING_CODE))  # until there is something to keep
    began = time.monotonic()
    until, found, workers = began + given.in_all, Found(given.out), default_workers()
    canaries = None if given.no_canaries else 30.0
    company = EvaluationConfig(in_company=given.in_company)
    config, most = RunConfig(device=given.device, evaluation=company), 2 * max(map(int, given.sessions.split(",")))
    told("opens the device")
    with open_environment(
        config, reward=REWARD, canary_minutes=canaries, workers=workers, waiting=most
    ) as environments:
        judge: SharedJudge = environments.judge
        watch = Watch(judge._judge if canaries is None else judge._judge._judge)  # type: ignore[arg-type,attr-defined]
        opened = {
            "problem": str(canary_problem(environments.catalogue.problems).id),
            "right_s": time.monotonic() - began,
        }
        conditions = {**judge.conditions, "in_company": str(given.in_company)}
        if found.parts.setdefault("conditions", conditions) != conditions:
            sys.exit(f"{given.out} is of {found.parts['conditions']}")
        found.parts.setdefault("canaries", []).extend([] if canaries is None else [opened])
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(watch, "stopped", True))
        with served(environments, most) as url:
            found.parts |= {"workers": workers, "sockets": url is not None}
            parts = _parts(Load(environments, url, watch), given, judge.facts.kind)
            missing = run_parts(parts, found, watch, until)
    return _conclude(parts, found.parts, missing)


def _conclude(parts: dict[str, Any], found: dict[str, Any], missing: list[str]) -> int:
    wrong = [one for name in parts if name in found for one in found[name].get("unexpected", [])]
    rewarded = found.get("cheats", {}).get("rewarded", [])
    print(json.dumps({name: _short(found[name]) for name in parts if name in found}, indent=1))
    print(f"not yet: {', '.join(missing) or 'nothing'}; unexpected: {len(wrong)}; cheats rewarded: {len(rewarded)}")
    return WAITING_CODE if missing else int(bool(wrong or rewarded))


def _short(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("rows", "unexpected")}


if __name__ == "__main__":
    sys.exit(main())
