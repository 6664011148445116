"""Knowledge bases: read, merge, compare, render, write and import them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernelblaster.errors import UsageError
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.diff import KnowledgeDiff, diff
from kernelblaster.knowledge.experience import EXPERIENCE, has_transitions, stored_transitions
from kernelblaster.knowledge.merge import merge
from kernelblaster.knowledge.relearn import relearn
from kernelblaster.knowledge.render import render
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

KnowledgeSource = KnowledgeBase | Path | None
"""A knowledge base, its file, or None for the shipped one."""


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


def learn_knowledge(runs: Iterable[Path], definitions: KnowledgeSource = None) -> KnowledgeBase:
    """A knowledge base with what experiments have measured, reckoned anew from their stored transitions.

    Args:
        runs: directories of experiments (`out/DATASET/PRECISION/EXPERIMENT`), which hold `experience.sqlite`.
        definitions: where states and techniques come from; the shipped ones if None.

    Raises KnowledgeError, MachineError, UsageError.
    """
    base = _base(definitions)
    transitions = [one for run in runs for one in stored_transitions(_experiment(run)).query()]
    return KnowledgeBase(relearn(base.document, transitions))


def _experiment(directory: Path) -> Path:
    """A directory in which transitions are stored. Raises UsageError."""
    if has_transitions(directory):
        return directory
    above = directory.resolve().parent
    hint = f"the experiment is {above}" if has_transitions(above) else "give out/DATASET/PRECISION/EXPERIMENT of a run"
    raise UsageError(f"{directory} is not the directory of an experiment: it has no {EXPERIENCE}", hint=hint)
