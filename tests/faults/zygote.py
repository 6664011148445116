"""A process that has imported the product and forks a child for each start of it that is asked for.

Reads one order per line from standard input, and writes its name and how its child ended. The child is the
command line itself with a stand-in device; it dies by SIGKILL where the order says.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import ssl
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import stand_ins
import torch
from fault_runs import Run
from fault_starts import Scenario, answer_exchange, events_below, order_of
from typer.main import get_command

import kernelblaster.models.openai_api
import kernelblaster.report.build
from kernelblaster.agent.events import Event
from kernelblaster.agent.files import EvaluationKey
from kernelblaster.cli import run_view
from kernelblaster.cli.app import app
from kernelblaster.cli.errors import exit_code_of, leave, prepare_process
from kernelblaster.cli.live import PlainView
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.registry import OpenedDevice
from kernelblaster.errors import ExitCode
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.problem import Problem
from kernelblaster.runs import optimize

TIMEOUT_S = 200
# The page shows what the other files hold; drawing it takes as long as all the rest of a start.
kernelblaster.report.build.write_report = lambda summary, layout: layout.run / "report.html"
# Nor is it tested here that options are read, certificates loaded and servers spared: half of what remains.
COMMAND = get_command(app)
ssl.create_default_context = cache(ssl.create_default_context)
kernelblaster.models.openai_api.Backoff = partial(kernelblaster.models.openai_api.Backoff, first_s=0.05)


class LoggedEvaluator(Evaluator):
    """Writes down which question it is asked, under the name of the file that will hold the answer."""

    log: Path

    def evaluate(self, problem: Problem, source: str, *, baseline: str | None = None, **how: Any) -> Evaluation:
        facts = self.facts
        key = EvaluationKey(
            source=source_digest(source),
            baseline=None if baseline is None else source_digest(baseline),
            device=f"{facts.kind}/{facts.name}/{facts.arch}",
            precision=str(self.precision),
            workload=str(self.workload),
            purpose="search" if how["profile"] else "final",
        )
        with self.log.open("a") as log:
            log.write(f"{problem.id} {key.name}\n")
        return super().evaluate(problem, source, baseline=baseline, **how)


class DyingView(PlainView):
    """A sink of events that is the end of the process at the chosen one that is new, counted from 1; 0 for never."""

    dies_at = 0
    known: ClassVar[set[tuple[str, str]]] = set()
    """What earlier starts have told; a node that was cut off tells it again."""
    new = 0

    def emit(self, event: Event) -> None:
        super().emit(event)
        if (event.kind, event.slot) in self.known:
            return
        self.known.add((event.kind, event.slot))
        self.new += 1
        if self.new == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


def child(order: dict[str, Any]) -> None:
    """One start of the product. Does not return."""
    os.chdir(order["directory"])
    for number, name in ((1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    prepare_process()
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.faults_arm(
        os.path.join(order["directory"], "out", "").encode(), order["disk_mode"], ctypes.c_long(order["at"])
    )
    code = start(order)
    library.faults_seen.restype = ctypes.c_long
    Path("disk_calls.txt").write_text(str(library.faults_seen()))
    leave(code)


def start(order: dict[str, Any]) -> int:
    """The command line on the stand-in device, in this process; its exit code."""
    os.environ.update(order["settings"])
    torch.set_num_threads(1)
    device = stand_ins.StandInDevice(ruled=order["ruled"], lost_after=order["lost_after"])
    optimize.choose_device = lambda config, tell: OpenedDevice(device, "a stand-in")
    LoggedEvaluator.log = Path(order["directory"], "evaluations.log")
    optimize.Evaluator = LoggedEvaluator
    DyingView.dies_at = order["dies_at_event"]
    DyingView.known = events_below(Path(order["directory"]))
    run_view.PlainView = DyingView
    return exit_code_of(lambda: COMMAND(order["arguments"], prog_name="kernelblaster", standalone_mode=False))


def warm_up() -> None:
    """A first start imports and compiles for seconds what every further one finds done."""
    with tempfile.TemporaryDirectory() as directory, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        run = Run(Scenario(1, ("--steps=1",), "batch_exchange"), Path(directory, "run"))
        while start(order_of(run.scenario, run.directory)) == ExitCode.WAITING:
            answer_exchange(run.run / "exchange")
    latest = time.monotonic() + 10
    while threading.active_count() > 1 and time.monotonic() < latest:
        time.sleep(0.05)  # the thread that limits the time of problems' code ends by itself
    assert threading.active_count() == 1, "a process with threads must not be forked"


def born(order: dict[str, Any]) -> int:
    """Fork a child for an order; its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        child(order)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Serve orders until standard input ends."""
    warm_up()
    gc.collect()
    gc.freeze()
    alive: dict[int, tuple[str, float, int]] = {}
    # Unbuffered: `select` knows nothing of lines that a buffer has already taken in.
    orders = open(sys.stdin.fileno(), "rb", buffering=0)  # noqa: SIM115
    while True:
        ready, _, _ = select.select([orders], [], [], 0.002 if alive else None)
        if ready:
            line = orders.readline()
            if not line:
                os._exit(0)
            order = json.loads(line)
            after_s = order["killed_after_s"]
            deadline = time.monotonic() + (after_s or TIMEOUT_S)
            alive[born(order)] = (order["name"], deadline, signal.SIGKILL if after_s else signal.SIGABRT)
        for pid, (name, deadline, blow) in list(alive.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del alive[pid]
                print(name, os.waitstatus_to_exitcode(status), flush=True)
            elif time.monotonic() > deadline:
                os.kill(pid, blow)


if __name__ == "__main__":
    main()
