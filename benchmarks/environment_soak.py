"""Plays many episodes against a real server on the emulated GPU and counts what it still holds afterwards.

    python benchmarks/environment_soak.py --out soak.json [--episodes 10000] [--fresh 40] [--minutes 90]

The server is `kernelblaster env serve` in a process of its own, with folders of its own for temporary and for built
files, and `--clients` play on it at once. One episode in `--fresh` submits a source that was never judged, which is
compiled and run: right and wrong kernels, ones that do not compile, crash on the device or the host, hang, or take
memory without end (`soak_submissions.py`), one in three with a socket that drops while it is judged. The others are
cheap: such a source again, which is answered from memory; no code; requests that are refused; sockets that drop before
a step, during one, or within a frame. What is held is counted from outside, when nobody is connected: slots, threads,
file descriptors, processes (those that belong to nobody, too), files, memory. Needs the extra `env`; Triton where it is
installed.

Exit code 1 when anything was leaked, a verdict was wrong or the server did not end. What was counted so far is in
`--out` after each thousand episodes; SIGINT and `--minutes` end it early, and it says how many episodes it played.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from soak_submissions import KINDS, Kind
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from kernelblaster.python_candidates.recording import has_triton
from kernelblaster.storage.atomic import write_atomically

PROBLEM = "L1_19"
CAPACITY = 12
"""Slots of the server; more than clients, for a dropped socket leaves its slot when its step has ended."""
TIMEOUT_S = 6.0
"""For each request to a candidate; what hangs takes it."""
ANSWER_S = 600.0
WARM_UP = 200
"""Episodes before the first count: pools of threads fill, inputs and harnesses are made."""
_WHERE = re.compile(r"ws://127\.0\.0\.1:(\d+)/ws")


@dataclass(frozen=True)
class Census:
    """What a server holds while nobody is connected.

    Attributes:
        threads, descriptors, mebibytes: of its process.
        processes: its descendants, and those that work in its folders.
        files: in its folder of temporary files.
        free_slots: sessions that could be opened at once, and reset.
        one_more: whether a session beyond them is refused.
    """

    threads: int
    descriptors: int
    mebibytes: int
    processes: int
    files: int
    free_slots: int
    one_more: str


class Refused(RuntimeError):
    """The server answered with an error."""


class Served:
    """A server in a process of its own.

    Args:
        process: of the server.
        port: on which it listens.
        folder: all its files are below.
    """

    def __init__(self, process: subprocess.Popen[str], port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.folder = folder

    def connected(self) -> ClientConnection:
        """A client that speaks to it."""
        return connect(f"ws://127.0.0.1:{self.port}/ws", open_timeout=60, close_timeout=10, max_size=None, legacy=True)

    def load(self) -> dict[str, float]:
        """What `/load` says."""
        with urlopen(f"http://127.0.0.1:{self.port}/load", timeout=60) as answer:
            found: dict[str, float] = json.load(answer)
            return found

    def census(self, within_s: float = 300.0) -> Census:
        """What it holds, when nothing is judged any more."""
        until = time.monotonic() + within_s
        while time.monotonic() < until and (self.load()["running"] or self.load()["waiting"]):
            time.sleep(0.2)
        slots, more = self._slots(until)
        time.sleep(1.0)
        pid = self.process.pid
        status = Path(f"/proc/{pid}/status").read_text()
        return Census(
            threads=int(re.findall(r"^Threads:\s+(\d+)", status, re.MULTILINE)[0]),
            descriptors=len(os.listdir(f"/proc/{pid}/fd")),
            mebibytes=int(re.findall(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)[0]) >> 10,
            processes=len(self.processes()),
            files=sum(len(files) for _, _, files in os.walk(self.folder / "tmp")),
            free_slots=slots,
            one_more=more,
        )

    def _slots(self, until: float) -> tuple[int, str]:
        """Sessions that can be had at once, at most CAPACITY, and what one more is told."""
        most = 0
        while most < CAPACITY and time.monotonic() < until:
            with suppress(ConnectionClosed, Refused, OSError), _several() as sockets:
                for _ in range(CAPACITY):
                    sockets.append(self.connected())
                    ask(sockets[-1], "reset", problem_id=PROBLEM)
                    most = max(most, len(sockets))
                sockets.append(self.connected())
                with suppress(TimeoutError):
                    return most, str(sockets[-1].recv(10.0))
                return most, "nothing: it was let in"
            time.sleep(0.2)
        return most, "not tried"

    def processes(self) -> set[int]:
        """Descendants of the server, and whatever has its folder as working directory or in its arguments."""
        parents: dict[int, int] = {}
        marked = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                stat = Path(f"/proc/{name}/stat").read_text()
                parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
                told = Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace")
                if str(self.folder) in f"{os.readlink(f'/proc/{name}/cwd')} {told}":
                    marked.add(int(name))
        family = {self.process.pid}
        while grown := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= grown
        return (family | marked) - {self.process.pid, os.getpid()}


@contextmanager
def _several() -> Iterator[list[ClientConnection]]:
    sockets: list[ClientConnection] = []
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()


def ask(client: ClientConnection, kind: str, **data: object) -> dict[str, Any]:
    """The answer's data. Raises Refused for an error, TimeoutError for none."""
    client.send(json.dumps({"type": kind, "data": data}))
    answer = json.loads(client.recv(ANSWER_S))
    if answer["type"] == "error":
        raise Refused(json.dumps(answer["data"]))
    found: dict[str, Any] = answer["data"]
    return found


def drop(client: ClientConnection) -> None:
    """End the connection as a killed process does: without a closing handshake, and with a reset."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    with suppress(OSError):
        client.socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def serving() -> Iterator[Served]:
    """A server that answers; killed at the end if it still runs."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        options = ["--device", "emulated", "--precision", "fp32", "--port", "0", "--capacity", str(CAPACITY)]
        options += ["--workers", "2", "--waiting", "64", "--idle-minutes", "1"]
        settings = [f"evaluation.timeout_s={TIMEOUT_S}", "evaluation.input_sets=1", "evaluation.memory_gb=2"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelblaster", "env", "serve", *options]
            + [word for setting in settings for word in ("--set", setting)],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder / "tmp"), "KERNELBLASTER_CACHE": str(folder / "cache")},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            for line in process.stderr:
                print(f"... server: {line.strip()}", file=sys.stderr, flush=True)
                if where := _WHERE.search(line):
                    threading.Thread(target=_drain, args=(process,), daemon=True).start()
                    break
            else:
                sys.exit("the server did not start")
            yield Served(process, int(where[1]), folder)
        finally:
            process.kill()
            process.wait()


def _drain(process: subprocess.Popen[str]) -> None:
    """Read what the server says, so that it is never held up: an error's last line is told."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip() and not line.startswith((" ", "Traceback", "During", "The above")):
            print(f"... server: {line.rstrip()[:200]}", file=sys.stderr, flush=True)


class Soak:
    """Episodes, and what became of them.

    Args:
        served: who is played on.
        fresh: one episode in so many submits what was never judged.
    """

    def __init__(self, served: Served, fresh: int) -> None:
        self.served = served
        self.fresh = fresh
        self.ends: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        """A source of each kind that was judged, to be submitted again."""
        self._kinds = [kind for kind in KINDS if kind.comment == "//" or has_triton()]

    def begin(self) -> None:
        """Submit a Triton module where there is Triton: from then on recorders wait, which are processes."""
        kind = self._kinds[-1]
        if kind.comment == "#":
            with self.served.connected() as client:
                ask(client, "reset", problem_id=PROBLEM, tier="quick")
                self._check(ask(client, "step", code=kind.source(-1)), kind)

    def play(self, number: int) -> bool:
        """One episode. False when none was played, because the soak is over."""
        if self.stopped.is_set():
            return False
        try:
            client = self._begun(number)
            try:
                end = self._fresh(client, number) if number % self.fresh == 0 else self._cheap(client, number)
            finally:
                client.close()
        except (ConnectionClosed, Refused, OSError, TimeoutError) as failure:
            end = "failed"
            self._unexpected(f"{number}: {type(failure).__name__} {failure}")
        with self._lock:
            self.ends[end] += 1
        return True

    def _begun(self, number: int) -> ClientConnection:
        """A session with an episode. Slots of dropped sockets come back when their steps have ended."""
        until = time.monotonic() + ANSWER_S
        problem = PROBLEM if number % self.fresh == 0 else f"L1_{19 + number % 30}"
        while True:
            client = self.served.connected()
            try:
                ask(client, "reset", problem_id=problem, max_turns=2, tier="quick")
                return client
            except (ConnectionClosed, Refused) as refusal:
                client.close()
                full = "CAPACITY" in str(refusal) or isinstance(refusal, ConnectionClosed)
                if not full or time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _fresh(self, client: ClientConnection, number: int) -> str:
        turn = number // self.fresh
        kind, lap = self._kinds[turn % len(self._kinds)], turn // len(self._kinds)
        if lap % kind.every:
            kind = self._kinds[lap % 3]
        source = kind.source(number)
        if turn % 3 == 2:
            client.send(json.dumps({"type": "step", "data": {"code": source}}))
            time.sleep(number % 7 * 0.5)
            drop(client)
            return f"dropped while judged: {kind.name}"
        self._check(ask(client, "step", code=source), kind)
        self._known[kind.name] = source
        return f"judged: {kind.name}"

    def _cheap(self, client: ClientConnection, number: int) -> str:
        way = number % 10
        if way < 4 and self._known and number % 2:
            name = list(self._known)[number // 2 % len(self._known)]
            kind = next(kind for kind in self._kinds if kind.name == name)
            ask(client, "reset", problem_id=PROBLEM, max_turns=2, tier="quick")
            self._check(ask(client, "step", code=self._known[name]), kind)
            return "known source"
        if way < 6:
            self._check(ask(client, "step", code=" " * (1 + number % 9)), _BLANK)
            return "no code"
        if way == 6:
            return self._refusals(client, number)
        if way == 7:
            drop(client)
            return "dropped before a step"
        if way == 8:
            again = list(self._known.values()) or [""]
            client.send(json.dumps({"type": "step", "data": {"code": again[number % len(again)]}}))
            drop(client)
            return "dropped during a step"
        client.socket.sendall(b"\x81\xfe\x10\x00\0\0\0\0{")
        drop(client)
        return "dropped within a frame"

    def _refusals(self, client: ClientConnection, number: int) -> str:
        """Four requests that are refused and take no turn, and one that is served."""
        wrong: tuple[tuple[str, dict[str, object]], ...] = (
            ("reset", {"problem_id": f"L9_{number}"}),
            ("reset", {"levels": "77"}),
            ("step", {"code": "x" * 300_000}),
            ("step", {"text": "no code"}),
        )
        for kind, data in wrong:
            with suppress(Refused):
                ask(client, kind, **data)
                self._unexpected(f"{number}: {kind} was served with {str(data)[:60]}")
        self._check(ask(client, "step", code=""), _BLANK)
        return "refusals"

    def _check(self, answer: dict[str, Any], kind: Kind) -> None:
        verdict, reason = answer["observation"]["verdict"], answer["observation"]["reason"]
        with self._lock:
            self.verdicts[f"{kind.name}: {verdict}"] += 1
        if verdict not in kind.right:
            self._unexpected(f"{kind.name} was judged {verdict}: {reason[:200]}")

    def _unexpected(self, text: str) -> None:
        print(f"... unexpected: {text}", file=sys.stderr, flush=True)
        with self._lock:
            self.unexpected.append(text[:400])


_BLANK = Kind("no code", "", frozenset({"no_code"}))


def main() -> int:
    """Print and keep what was held before and after; 1 when something has stayed or was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=10_000, help=f"more than {WARM_UP}")
    parser.add_argument("--fresh", type=int, default=40, help="one episode in so many is compiled and run")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=90.0, help="after which no episode is begun")
    given = parser.parse_args()
    began, found = time.monotonic(), {"warm_up": WARM_UP, "clients": given.clients, "capacity": CAPACITY}

    def keep(**more: Any) -> None:
        found.update(more)
        write_atomically(given.out, json.dumps(found, indent=1) + "\n")

    with serving() as served:
        soak = Soak(served, given.fresh)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: soak.stopped.set())
        timer = threading.Timer(60.0 * given.minutes, soak.stopped.set)
        timer.daemon = True
        timer.start()
        soak.begin()
        censuses, played = [], 0
        with ThreadPoolExecutor(given.clients) as pool:
            marks = [0, WARM_UP, *range(1000, given.episodes, 1000), given.episodes]
            for first, last in pairwise(marks):
                played += sum(pool.map(soak.play, range(first, last)))
                censuses.append(served.census())
                keep(
                    episodes=played, seconds=time.monotonic() - began, ends=dict(sorted(soak.ends.items())),
                    verdicts=dict(sorted(soak.verdicts.items())), unexpected=soak.unexpected,
                    held=[asdict(one) for one in censuses],
                )  # fmt: skip
                print(f"... {played} episodes, {time.monotonic() - began:.0f} s: {censuses[-1]}", file=sys.stderr)
                if soak.stopped.is_set():
                    break
        served.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            served.process.wait(60)
        keep(exit_code=served.process.poll(), processes_after_the_end=len(served.processes()),
             files_after_the_end=sum(len(files) for _, _, files in os.walk(served.folder / "tmp")))  # fmt: skip
    leaked = leaks(censuses[0], censuses[-1]) + [
        name for name in ("exit_code", "processes_after_the_end", "files_after_the_end") if found[name] != 0
    ]
    keep(leaked=leaked)
    print(json.dumps(found, indent=1))
    return int(bool(leaked or soak.unexpected))


def leaks(before: Census, after: Census) -> list[str]:
    """What a server holds more of than before, beyond what a pool of threads may; memory is told and not judged."""
    room = {"threads": CAPACITY, "descriptors": 3 * CAPACITY, "processes": 0, "files": 0}
    grown = [name for name, more in room.items() if getattr(after, name) > getattr(before, name) + more]
    return grown + ([] if after.free_slots == CAPACITY and "CAPACITY" in after.one_more else ["slots"])


if __name__ == "__main__":
    sys.exit(main())
