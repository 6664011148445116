"""What the workflow itself costs: 1,000 steps on one problem with a scripted model and an instant evaluator.

    python benchmarks/workflow_overhead.py [--steps 1000] [--rollouts 1]

Prints milliseconds per step (of wall time, and of this process' CPU time) and resident memory at intervals. The shipped
knowledge base, the experiment's database and files with their fsync are part of a step.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "agent"))

from agent_support import ScriptedModel, answer, kernel, make_context

from kernelblaster.agent.events import Decided, Event
from kernelblaster.agent.graph import run_problem
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.base import Reply, Request

REPORTS = 10


def resident_mb() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Clock:
    """Prints time per step and memory whenever another tenth of the steps is done."""

    def __init__(self, total: int) -> None:
        self._every = max(1, total // REPORTS)
        self._steps = 0
        self._last = time.perf_counter()
        self._last_cpu = time.process_time()

    def emit(self, event: Event) -> None:
        """Count finished steps."""
        if not isinstance(event, Decided):
            return
        self._steps += 1
        if self._steps % self._every == 0:
            now, cpu = time.perf_counter(), time.process_time()
            wall_ms = 1000 * (now - self._last) / self._every
            cpu_ms = 1000 * (cpu - self._last_cpu) / self._every
            self._last, self._last_cpu = now, cpu
            print(f"{self._steps:6d} steps  {wall_ms:7.2f} ms/step  {cpu_ms:7.2f} ms CPU  {resident_mb():7.1f} MB")


class ForgetfulModel(ScriptedModel):
    """Keeps no requests, so that memory is the workflow's own."""

    async def complete(self, request: Request) -> Reply:
        """Answer by the script."""
        reply = await super().complete(request)
        self.requests.clear()
        return reply


async def measure(root: Path, rollouts: int, steps: int) -> None:
    """Run one problem and print what it cost."""
    model = ForgetfulModel(root / "model.log", lambda rollout, step, attempt: answer(_slower(rollout, step)))
    clock = Clock(rollouts * steps)
    knowledge = KnowledgeStore(root / "seed.json")
    knowledge.create()
    search = {"rollouts": rollouts, "steps": steps, "patience": 10 * steps}
    context = make_context(root, model, experience=Experience(knowledge), events=clock, **search)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    outcome = await run_problem(context)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    per_step = f"{1000 * seconds / outcome.transitions:.2f} ms/step, {1000 * cpu / outcome.transitions:.2f} ms CPU"
    print(f"{outcome.transitions} transitions, {outcome.status}, {per_step}")


def _slower(rollout: int, step: int) -> str:
    """A new candidate each time; every fourth is accepted, so that techniques are never exhausted."""
    speed = 1.0108 ** (step // 4) if step % 4 == 0 else 0.5
    return kernel(speed, tag=f"_{rollout}_{step}")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rollouts", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        asyncio.run(measure(Path(root), arguments.rollouts, arguments.steps // arguments.rollouts))


if __name__ == "__main__":
    main()
