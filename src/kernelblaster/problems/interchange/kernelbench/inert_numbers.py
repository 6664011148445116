"""Numbers that change nothing at a small size: a window wider than what is there, a block that holds all of it.

A kernel that leaves them out is right at such a size, and wrong at the module's own. So those that a size can give are
made smaller, until results differ. For those that are written out in the module an extent is made larger where that is
affordable; where it is not they stay without effect.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.module_files import write_reference
from kernelblaster.problems.interchange.kernelbench.text_edits import Piece, with_pieces
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.python_source import parse_python
from kernelblaster.problems.reference import results

if TYPE_CHECKING:
    import torch

_LEAST = 4
"""Literals below are kernel sizes, strides and the like."""
_MOST = 16
"""Literals that are tried; each takes a few runs of the module."""
Results = tuple["torch.Tensor", ...]


@dataclass(frozen=True)
class _WrittenOut:
    """A whole number in the text."""

    piece: Piece
    value: int


def with_effects(
    problem: Problem, text: str, small: Mapping[str, int], affordable: Callable[[Problem], bool]
) -> dict[str, int]:
    """`small` changed so that the module's numbers have an effect there.

    Args:
        problem: with the module's own size alone.
        text: of the module.
        small: extents of the size that is changed.
        affordable: whether the size of a problem is cheap enough to be checked; False where it does not run.
    """
    trial = _Trial(problem, text, affordable)
    chosen = dict(small)
    for name in small:
        chosen = trial.lowered(chosen, name) or chosen
    for literal in islice(trial.literals(chosen), _MOST):
        chosen = trial.enlarged(chosen, literal) or chosen
    return chosen


class _Trial:
    """Runs of a module at other extents, and with other numbers in the place of literals."""

    def __init__(self, problem: Problem, text: str, affordable: Callable[[Problem], bool]) -> None:
        self._problem, self._text, self._affordable = problem, text, affordable
        ((self._size, self._full),) = problem.workloads.items()
        self._ran = cache(self._run)

    def lowered(self, chosen: Mapping[str, int], name: str) -> dict[str, int] | None:
        """With a number that changes nothing made so small that it does, and smaller by half; None for others."""
        here, value = self._at(chosen), chosen[name]
        if here is None or not _is_inert(here, value, lambda other: self._at({**chosen, name: other})):
            return None
        found = None
        while value > 2:
            value //= 2
            # An odd one first: no tile shall divide it.
            for lower in dict.fromkeys((value | 1, value)):
                other = {**chosen, name: lower}
                became = self._at(other)
                if became is None or not _differ(here, became):
                    continue
                if found is not None:
                    return other
                found, here = other, became
                break
        return found

    def enlarged(self, chosen: Mapping[str, int], literal: _WrittenOut) -> dict[str, int] | None:
        """With an extent above a literal that changes nothing, where it then does; None where there is none."""
        here, value = self._at(chosen), literal.value
        if here is None or not _is_inert(here, value, lambda other: self._at(chosen, (literal, other))):
            return None
        extent = (value + value // 2) | 1
        for name in sorted(chosen, key=lambda name: -chosen[name]):
            if not chosen[name] < extent < self._full[name]:
                continue
            larger = {**chosen, name: extent}
            with_it, without = self._at(larger), self._at(larger, (literal, value // 2))
            if with_it is not None and without is not None and _differ(with_it, without):
                return larger
        return None

    def literals(self, small: Mapping[str, int]) -> Iterator[_WrittenOut]:
        """Whole numbers in the text between what extents are in `small` and at the module's own size."""
        shrunk = [name for name in small if small[name] < self._full[name]]
        if not shrunk:
            return
        least = max(_LEAST, min(small[name] for name in shrunk) // 2)
        most = max(self._full[name] for name in shrunk)
        for statement in parse_python(self._text, str(self._problem.reference_path)).body:
            stored = {node.id for node in ast.walk(statement) if _is_stored(node)}
            if isinstance(statement, ast.Assign | ast.AnnAssign) and stored & self._full.keys():
                continue  # a size gives it
            for node in ast.walk(statement):
                match node:
                    case ast.Constant(value=int(value), end_col_offset=int(end)) if least <= value < most:
                        yield _WrittenOut(Piece(node.lineno, node.col_offset, end), value)

    def _at(self, extents: Mapping[str, int], changed: tuple[_WrittenOut, int] | None = None) -> Results | None:
        """What the module gives; None where it does not run, or at too high a price."""
        return self._ran(tuple(extents.items()), changed)

    def _run(self, extents: tuple[tuple[str, int], ...], changed: tuple[_WrittenOut, int] | None) -> Results | None:
        sized = replace(self._problem, workloads={self._size: dict(extents)})
        # What a size costs is asked once, and not for every number in the place of a literal.
        if not self._affordable(sized) if changed is None else self._ran(extents, None) is None:
            return None
        try:
            if changed is None:
                return results(sized)
            with tempfile.TemporaryDirectory() as place:
                other = replace(sized, directory=Path(place))
                literal, value = changed
                write_reference(other, with_pieces(self._text, {literal.piece: str(value)}))
                return results(other)
        except ProblemError:
            return None


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_inert(here: Results, value: int, at: Callable[[int], Results | None]) -> bool:
    """Whether a module gives the same with larger values of a number; with smaller ones where it runs with no larger.

    A block of 512 that holds 300 rows has no effect, although one of 256 would have.
    """
    import torch

    for others in ((value + 1, 2 * value), (value - 1, value // 2)):
        ran = [became for other in others if other > 0 and (became := at(other)) is not None]
        if ran:
            return all(len(one) == len(here) and all(map(torch.equal, here, one)) for one in ran)
    return False


def _differ(here: Results, other: Results) -> bool:
    """Whether values are others in tensors of the same shapes."""
    import torch

    same_shapes = [one.shape for one in here] == [one.shape for one in other]
    return same_shapes and not all(map(torch.equal, here, other))
