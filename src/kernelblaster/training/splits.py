"""Which problems a model is trained on and which are held out: by operator, fixed before training, deduplicated.

The split of a problem is that of its tags (`problems.tags`): no held-out operation is in any problem of `train`. It
holds for prompts, worked examples, parents and imported replies alike. A training problem whose reference is all but
that of a held-out one is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.errors import UsageError
from kernelblaster.problems.families import family_of
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.python_source import parse_python
from kernelblaster.problems.tags import Split
from kernelblaster.storage.atomic import write_atomically

LEFT_OUT = "left_out"
"""Split of a training problem that is all but a held-out one."""
SHINGLE = 5
NEAR = 0.9
"""Share of common shingles from which two references count as the same."""


class SplitEntry(BaseModel):
    """Where a problem belongs."""

    split: str
    family: str
    like: str = ""
    """The held-out problem that it is all but equal to; empty unless it is left out."""


class Splits(BaseModel):
    """`splits.json`: problem -> where it belongs."""

    format: str = "kernelblaster-splits-1"
    problems: dict[str, SplitEntry]

    def of(self, problem: str) -> SplitEntry | None:
        """Where a problem, by its id, belongs; None for one that is not of the data set."""
        return self.problems.get(problem)

    def write(self, path: Path) -> None:
        """Raises OSError."""
        write_atomically(path, self.model_dump_json(indent=1))


def make_splits(problems: Iterable[Problem]) -> Splits:
    """Splits of problems with tags. Raises UsageError where one has none, ProblemError."""
    entries, shingles = {}, {}
    for problem in problems:
        if problem.split is None:
            raise UsageError(
                f"{problem.title} has no tags, so that no split holds it", hint="declare TAGS in its reference"
            )
        entries[str(problem.id)] = SplitEntry(split=problem.split, family=family_of(problem.reference_path))
        shingles[str(problem.id)] = shingles_of(problem.reference_path.read_text(encoding="utf-8"))
    held = [name for name, entry in entries.items() if entry.split == Split.HELD_OUT]
    for name, entry in entries.items():
        if entry.split != Split.TRAIN:
            continue
        like = next((other for other in held if similarity(shingles[name], shingles[other]) >= NEAR), None)
        if like is not None:
            entries[name] = SplitEntry(split=LEFT_OUT, family=entry.family, like=like)
    return Splits(problems=entries)


Shingles = frozenset[tuple[str, ...]]


def shingles_of(reference: str) -> Shingles:
    """Runs of `SHINGLE` tokens of what a reference computes; names of variables and numbers do not count."""
    tree = parse_python(reference)
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), tree)
    tokens = [token for node in ast.walk(model) for token in _tokens(node)]
    return frozenset(zip(*(tokens[start:] for start in range(SHINGLE)), strict=False))


def similarity(left: Shingles, right: Shingles) -> float:
    """Share of common shingles among all, 0 to 1 (Jaccard)."""
    every = left | right
    return len(left & right) / len(every) if every else 0.0


def _tokens(node: ast.AST) -> Iterable[str]:
    """What a node is, and the operation that it names."""
    match node:
        case ast.Load() | ast.Store() | ast.Constant() | ast.Expr():
            return ()
        case ast.Attribute(attr=attribute, value=ast.Name(id="self")):
            return ("self", "Attribute") if attribute else ()
        case ast.Attribute(attr=attribute):
            return (attribute,)
        case _:
            return (type(node).__name__,)
