"""Knowledge bases: read, merge, compare, render, write and import them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.config import DATASET
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.errors import UsageError
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.diff import KnowledgeDiff, diff
from kernelblaster.knowledge.experience import EXPERIENCE, has_transitions, stored_transitions
from kernelblaster.knowledge.merge import merge
from kernelblaster.knowledge.relearn import relearn
from kernelblaster.knowledge.render import render
from kernelblaster.knowledge.schema import Core
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.tags import Split
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.rows import read_outcome
from kernelblaster.replay.files import read_transitions
from kernelblaster.replay.transition import Transition
from kernelblaster.runs.recredit import recredited

KnowledgeSource = KnowledgeBase | Path | None
"""A knowledge base, its file, or None for the shipped one."""


@dataclass(frozen=True)
class LearnedKnowledge:
    """What was learned from transitions.

    Attributes:
        base: states and techniques with it.
        counted: transitions that its statistics hold.
        refused: why others are not in them -> how many.
    """

    base: KnowledgeBase
    counted: int
    refused: dict[str, int]


def read_knowledge(file: Path | None = None) -> KnowledgeBase:
    """Read an `optimization_database.json`; the shipped seed if None. Raises KnowledgeError."""
    return KnowledgeStore(file or seed_path(), owned=False).load()


def merge_knowledge(first: KnowledgeSource, *others: KnowledgeSource) -> KnowledgeBase:
    """Everything that any of them knows; what several know counts once. Raises KnowledgeError."""
    document = _base(first).document
    for other in others:
        document = merge(document, _base(other).document)
    return KnowledgeBase(document)


def diff_knowledge(before: KnowledgeSource, after: KnowledgeSource) -> KnowledgeDiff:
    """What the second knows beyond the first, and what it lacks. Raises KnowledgeError."""
    return diff(_base(before).document, _base(after).document)


def render_knowledge(base: KnowledgeSource = None) -> str:
    """A knowledge base as Markdown. Raises KnowledgeError."""
    return render(_base(base).document)


def write_knowledge(base: KnowledgeBase, file: Path) -> None:
    """Write a knowledge base to a file, in one piece; other writers of that file are waited for.

    Raises KnowledgeError when it is locked for long, MachineError when it cannot be written.
    """
    store = KnowledgeStore(file)
    store.create()
    store.update(lambda _: base.document)


def merge_into(target: Path, others: Iterable[Path]) -> KnowledgeBase:
    """Add the measurements and lessons of other files to one that exists, safe beside running searches.

    Raises KnowledgeError.
    """
    return KnowledgeBase(KnowledgeStore(target).merge(others))


def import_upstream(file: Path, target: Path) -> tuple[KnowledgeBase, int]:
    """Add the first release's knowledge base to `target`, begun from the shipped seed if missing.

    Its figures become weak priors, never measurements. Returns what `target` holds now, and how many techniques are
    new. A file that cannot be imported is refused before anything is written. Raises KnowledgeError.
    """
    from kernelblaster.knowledge.upstream import import_file

    import_file(read_knowledge().document, file)
    store = KnowledgeStore(target)
    store.create()
    before = len(store.load().techniques)
    after = store.update(lambda document: import_file(document, file))
    return KnowledgeBase(after), len(after.techniques) - before


def _base(source: KnowledgeSource) -> KnowledgeBase:
    return source if isinstance(source, KnowledgeBase) else read_knowledge(source)


def learn_knowledge(
    sources: Iterable[Path],
    definitions: KnowledgeSource = None,
    *,
    split: Split | str | None = None,
    without_families: Iterable[OpFamily | str] = (),
    without_transitions: Iterable[str] = (),
) -> LearnedKnowledge:
    """A knowledge base with what was measured, reckoned anew from transitions.

    Args:
        sources: directories of experiments (`out/DATASET/PRECISION/EXPERIMENT`), which hold `experience.sqlite` and the
            kernels of their searches, by which transitions are credited anew, and files of transitions (JSON lines).
        definitions: where states, techniques and kernels come from; the shipped ones if None.
        split: only what was measured on problems of the shipped data set in this part is learned, so that the other
            part can say whether learning helps.
        without_families: what was measured on problems of these families is not learned.
        without_transitions: digests of transitions that are not learned, such as what the judge mistook.

    Raises KnowledgeError, MachineError, ProblemError, UsageError.
    """
    left_out = _families(without_families)
    ids = None if split is None else _problems_of(split)
    document = _base(definitions).document
    transitions: list[Transition] = []
    cores: list[Core] = []
    for source in sources:
        if source.is_file():
            transitions += read_transitions(source)
            continue
        experiment = _experiment(source)
        transitions += recredited(experiment, stored_transitions(experiment).query(), document.techniques)
        cores += _cores_of(experiment)
    named = _named(transitions, without_transitions)
    found = relearn(
        document,
        [one for one in transitions if one.digest not in named],
        cores,
        lambda problem, family: family not in left_out and (ids is None or problem in ids),
    )
    refused = found.refused | ({"left out by name": len(named)} if named else {})
    return LearnedKnowledge(KnowledgeBase(found.document), found.counted, refused)


def _named(transitions: Iterable[Transition], digests: Iterable[str]) -> frozenset[str]:
    """The digests, which have to be of transitions that are there. Raises UsageError."""
    named = frozenset(digests)
    unknown = named - {one.digest for one in transitions}
    if unknown:
        raise UsageError(f"no transition {', '.join(sorted(unknown))} in what is learned from")
    return named


def _families(names: Iterable[OpFamily | str]) -> frozenset[OpFamily]:
    try:
        return frozenset(OpFamily(name) for name in names)
    except ValueError as error:
        raise UsageError(str(error), hint=f"families are {', '.join(OpFamily)}") from error


def _problems_of(split: Split | str) -> frozenset[str]:
    return frozenset(str(problem.id) for problem in Dataset(data_dir() / DATASET).select(split=split))


def _cores_of(experiment: Path) -> list[Core]:
    """The final kernels of an experiment's searches as it keeps them whole.

    Others in its document are what it began with, and may have been dropped since.
    """
    file = experiment / seed_path().name
    if not file.is_file():
        return []
    runs = RunLayout.of_experiment(experiment)
    ended = [read_outcome(directory) for run in runs for directory in run.problems()]
    final = {outcome.final_sha256 for outcome in ended if outcome is not None}
    cores = KnowledgeStore(file, owned=False).load().document.cores
    return [core for core in cores if core.whole is not None and source_digest(core.whole) in final]


def _experiment(directory: Path) -> Path:
    """A directory in which transitions are stored. Raises UsageError."""
    if has_transitions(directory):
        return directory
    above = directory.resolve().parent
    hint = f"the experiment is {above}" if has_transitions(above) else "give out/DATASET/PRECISION/EXPERIMENT of a run"
    raise UsageError(f"{directory} is not the directory of an experiment: it has no {EXPERIENCE}", hint=hint)
