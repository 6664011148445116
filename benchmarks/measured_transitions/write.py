"""Writes the measured edges of the content trial and of the recorded searches as transitions, for `kb learn`.

    python benchmarks/measured_transitions/write.py

docs/results/measured_transitions/NAME.jsonl holds a transition a line, refused.json why the other edges are none. The
shipped knowledge base learns from these files and from directories of experiments alike:

    kernelblaster kb learn data/kb/optimization_database.json docs/results/measured_transitions/*.jsonl RUN...
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "content_trial"))

from edges import MeasuredEdge, Refused
from parents import RECORDINGS, profiled_parents
from recorded_edges import recorded_edges
from trial_edges import trial_edges

from kernelblaster import KnowledgeBase, read_knowledge
from kernelblaster.paths import data_dir
from kernelblaster.replay.transition import Transition
from kernelblaster.storage.atomic import write_atomically

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "measured_transitions"


def edges(base: KnowledgeBase) -> Iterator[tuple[str, Iterable[MeasuredEdge | Refused]]]:
    """Name of a record -> its edges. Raises ProblemError, UsageError."""
    parents = {parent.id: parent for parent in profiled_parents()}
    yield "content_trial", trial_edges(parents, base.document)
    for recording in RECORDINGS:
        name = f"recording_{recording.partition('.')[0]}"
        yield name, recorded_edges(data_dir() / "recordings" / recording, parents)


def split(found: Iterable[MeasuredEdge | Refused], base: KnowledgeBase) -> tuple[list[Transition], Counter[str]]:
    """Transitions, and reason -> how many edges are none for it."""
    taken, refused = [], Counter[str]()
    for edge in found:
        try:
            if isinstance(edge, Refused):
                raise edge
            taken.append(edge.transition(base))
        except Refused as reason:
            refused[str(reason)] += 1
    return taken, refused


def main() -> None:
    """See the module."""
    base, why = read_knowledge(), {}
    for name, found in edges(base):
        taken, refused = split(found, base)
        text = "".join(f"{one.model_dump_json(exclude_defaults=True)}\n" for one in taken)
        write_atomically(RESULTS / f"{name}.jsonl", text)
        why[name] = dict(refused)
        print(f"{name}: {len(taken)} transitions, {sum(refused.values())} edges refused")
    write_atomically(RESULTS / "refused.json", json.dumps(why, indent=1) + "\n")


if __name__ == "__main__":
    main()
