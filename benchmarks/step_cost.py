"""What a step costs in an experiment that has stored 100 transitions, and in one that has stored 100,000.

    python benchmarks/step_cost.py [--stored 100 100000] [--steps 200] [--json]

Times what a step asks of the stored experience, without the workflow around it: the knowledge base for classification,
the draw of a technique, and the recording of its transition; and, once each, opening the experience and writing
`optimization_database.json`, which a run does at its start and at the end of each round. The stored transitions are
spread over states, techniques, operator families, precisions and runs, as those of many problems are.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "knowledge"))

from knowledge_samples import context, transition

from kernelblaster.knowledge.decisions import NoTechnique
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision
from kernelblaster.replay.transition import Transition

TRANSITIONS_PER_RUN = 40
"""Of one search of one problem."""


class Source:
    """Makes transitions of states and techniques of the shipped knowledge base."""

    def __init__(self, experience: Experience) -> None:
        states = experience.base().states
        self._edges = [(state, technique) for state, entry in states.items() for technique in entry.techniques]
        self._random = random.Random(0)

    def make(self, number: int, run: str) -> Transition:
        """One transition."""
        state, technique = self._random.choice(self._edges)
        return transition(
            f"level1/023/r1/rollout-0/step-{number}",
            run=run,
            state=state,
            technique=technique,
            speedup=self._random.choice((0.7, 0.9, 1.1, 1.4)),
            op_family=self._random.choice(list(OpFamily)),
            precision=self._random.choice(list(Precision)),
        )

    def fill(self, experience: Experience, count: int) -> None:
        """Store so many."""
        for number in range(count):
            experience.record(self.make(number, f"run-{number // TRANSITIONS_PER_RUN}"))


def milliseconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begun)


def median_step(experience: Experience, source: Source, steps: int) -> float:
    """Median milliseconds of a step on the experience."""

    def step(number: int) -> None:
        made = source.make(number, "measured")
        with suppress(NoTechnique):
            experience.base().select(made.state, context(), np.random.default_rng(number))
        experience.record(made)

    return statistics.median(milliseconds(lambda number=number: step(number)) for number in range(steps))


def measure(root: Path, stored: int, steps: int) -> dict[str, float]:
    """Figures of an experiment with so many transitions."""
    store = KnowledgeStore(root / "optimization_database.json")
    store.create()
    experience = Experience(store)
    source = Source(experience)
    source.fill(experience, stored)
    figures = {
        "stored_transitions": stored,
        "step_ms": median_step(experience, source, steps),
        "export_ms": milliseconds(experience.export),
        "file_mb": store.path.stat().st_size / 1e6,
    }
    experience.close()
    figures["open_ms"] = milliseconds(lambda: Experience(store))
    return figures


def main() -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stored", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for stored in arguments.stored:
        with tempfile.TemporaryDirectory() as root:
            rows.append(measure(Path(root), stored, arguments.steps))
        if not arguments.json:
            row = rows[-1]
            print(
                f"{stored:8d} stored: {row['step_ms']:.2f} ms a step; open {row['open_ms']:.0f} ms, "
                f"write {row['export_ms']:.0f} ms ({row['file_mb']:.1f} MB)"
            )
    if arguments.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
