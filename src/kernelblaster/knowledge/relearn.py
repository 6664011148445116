"""Statistics reckoned anew: a document from definitions and the transitions that were stored or kept.

Whoever studies whether what was learned helps must not learn it on what is asked: `Scope` leaves problems out.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.knowledge.cores import merge_cores
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.schema import Core, KnowledgeDocument, Lesson
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.families import OpFamily
from kernelblaster.replay.transition import Transition

Scope = Callable[[str, OpFamily], bool]
"""Whether what was measured on a problem (its id, its family) may be learned."""


@dataclass(frozen=True)
class Relearned:
    """What came of transitions.

    Attributes:
        document: the definitions with what was learned, and no other figures.
        counted: transitions that are in its statistics.
        refused: why others are not -> how many.
    """

    document: KnowledgeDocument
    counted: int
    refused: dict[str, int]


def everywhere(problem: str, family: OpFamily) -> bool:
    """The scope that leaves nothing out."""
    return True


def curated(document: KnowledgeDocument) -> KnowledgeDocument:
    """The document without what was counted: statistics, runs, and how often lessons helped."""
    lessons = tuple(lesson.model_copy(update={"counts": {}}) for lesson in document.lessons)
    return document.model_copy(update={"lessons": lessons, "statistics": (), "runs": {}})


def relearn(
    definitions: KnowledgeDocument,
    transitions: Iterable[Transition],
    cores: Iterable[Core] = (),
    scope: Scope = everywhere,
) -> Relearned:
    """The definitions with what the transitions teach, as if they had just been recorded, and with the cores.

    Transitions of states that the definitions do not know teach nothing here, nor does one that comes again. What the
    definitions hold that was measured outside the scope (cores, pairs of lessons) is left out, too. Raises
    KnowledgeError, MachineError.
    """
    refused: Counter[str] = Counter()
    counted: list[Transition] = []
    with tempfile.TemporaryDirectory() as room:
        store = KnowledgeStore(Path(room) / "optimization_database.json")
        store.write(_within(curated(definitions), cores, scope))
        experience = Experience(store)
        try:
            for transition in transitions:
                if not scope(transition.problem, OpFamily(transition.op_family)):
                    refused["outside the scope"] += 1
                elif transition.state not in definitions.states:
                    refused[f"no state {transition.state}"] += 1
                elif not experience.record(transition):
                    refused["counted before"] += 1
                else:
                    counted.append(transition.as_evidence())
            document = experience.document()
        finally:
            experience.close()
    return Relearned(_dated(document, counted), len(counted), dict(refused))


def _within(document: KnowledgeDocument, cores: Iterable[Core], scope: Scope) -> KnowledgeDocument:
    kept = [core for core in merge_cores(document.cores, cores) if scope(core.problem, core.op_family)]
    lessons = [_lesson_within(lesson, scope) for lesson in document.lessons]
    return document.model_copy(
        update={"cores": tuple(kept), "lessons": tuple(lesson for lesson in lessons if lesson is not None)}
    )


def _lesson_within(lesson: Lesson, scope: Scope) -> Lesson | None:
    """A lesson with its pairs of the scope; None where all its pairs lie outside."""
    pairs = tuple(pair for pair in lesson.pairs if scope(pair.problem, pair.op_family))
    return None if lesson.pairs and not pairs else lesson.model_copy(update={"pairs": pairs})


def _dated(document: KnowledgeDocument, counted: Iterable[Transition]) -> KnowledgeDocument:
    """Runs dated by their transitions, not by now: the same transitions make the same document."""
    last = {one.run: one.finished_at for one in sorted(counted, key=lambda one: one.finished_at)}
    runs = {name: run.model_copy(update={"updated_at": last[name]}) for name, run in document.runs.items()}
    return document.model_copy(update={"runs": runs})
