"""Extents that a KernelBench module writes out where it draws its inputs, as numbers with names.

`torch.randn(16, 3, 256, 256)` has no number that a size could give. What is written out in `get_inputs`,
`get_init_inputs`, and in tuples, lists and dictionaries at the top level becomes a number with a name, wherever the
module runs with another value there and its tensors have other shapes then. Equal ones that cannot vary alone, such as
a width of the input and of a layer, vary together.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path

from kernelblaster.problems.interchange.kernelbench.declared_sizes import SIZES
from kernelblaster.problems.interchange.kernelbench.module_numbers import COLLECTIONS, number_of
from kernelblaster.problems.interchange.kernelbench.module_text import FUNCTIONS, ModuleText, read_module, unused
from kernelblaster.problems.interchange.kernelbench.text_edits import Piece, with_pieces
from kernelblaster.problems.interchange.signature import TAKEN
from kernelblaster.problems.python_source import parse_python

_MOST = 16
"""Literals of a module that are tried; each takes a few runs for its shapes."""


@dataclass(frozen=True)
class Shapes:
    """Of a module's tensors: inputs and weights by name, outputs in order."""

    inputs: Mapping[str, tuple[int, ...]]
    weights: Mapping[str, tuple[int, ...]]
    outputs: tuple[tuple[int, ...], ...]

    def is_like(self, other: Shapes) -> bool:
        """Whether there are the same tensors, of as many axes."""
        mine, others = (
            [*one.inputs.items(), *one.weights.items(), *enumerate(one.outputs)] for one in (self, other)
        )  # fmt: skip
        return [(name, len(shape)) for name, shape in mine] == [(name, len(shape)) for name, shape in others]

    def changed_axis(self, other: Shapes) -> tuple[str, int] | None:
        """The first axis of an input that is another in `other`, which is like this."""
        for name, shape in self.inputs.items():
            for axis, (one, another) in enumerate(zip(shape, other.inputs[name], strict=True)):
                if one != another:
                    return name, axis
        return None


Run = Callable[[ModuleText, Mapping[str, int]], Shapes | None]
"""Shapes of a module whose numbers are others; None where it does not run with them."""


@dataclass(frozen=True)
class _Literal:
    """A whole number that is written out, and what it is called where no axis follows it."""

    piece: Piece
    value: int
    called: str


def with_literal_extents(
    source: Path, text: str, run: Run, own: Mapping[str, int], bounds: Collection[str] = ()
) -> ModuleText | None:
    """The module with names in the place of literals that are extents; None where there are none.

    Args:
        source: the file, for messages.
        text: of it.
        run: runs a module.
        own: numbers that it has already.
        bounds: those of them that no shape follows: of values, which an equal extent may have to agree with.
    """
    tree = parse_python(text, str(source))
    literals = list(_literals(tree))[:_MOST]
    if not literals or _first_statement(tree) is None:
        return None
    taken = _global_names(source, text)
    trial = _Trials(source, text, tree, run, {one: _free(f"extent_{at}", taken) for at, one in enumerate(literals)})
    named: dict[_Literal, str] = {}
    by_value: dict[int, list[_Literal]] = defaultdict(list)
    for literal in filter(trial.is_possible, literals):
        by_value[literal.value].append(literal)
    for value, equal in by_value.items():
        bound = next((name for name in bounds if own[name] == value and trial.vary_with(equal, name)), None)
        if bound is not None:
            named |= dict.fromkeys(equal, bound)
            continue
        for some in _varying(trial, equal):
            axis = trial.axis_of(some)
            name = _free(f"{axis[0]}_axis_{axis[1]}" if axis else some[0].called, taken)
            named |= dict.fromkeys(some, name)
        if not any(one in named for one in equal):
            tied = next((name for name in own if own[name] == value and trial.vary_with(equal, name)), None)
            named |= dict.fromkeys(equal, tied) if tied else {}
    ordered = {one: named[one] for one in literals if one in named}
    return read_module(source, _rewritten(text, tree, ordered, own)) if ordered else None


def _varying(trial: _Trials, equal: Sequence[_Literal]) -> list[list[_Literal]]:
    """Those of equal literals that vary: each alone, or all together where some of them cannot."""
    alone = [[one] for one in equal if trial.axes_vary([one])]
    if len(alone) == len(equal):
        return alone
    return [list(equal)] if trial.axes_vary(equal) else alone


class _Trials:
    """Runs of the module with a name in the place of every literal."""

    def __init__(self, source: Path, text: str, tree: ast.Module, run: Run, names: Mapping[_Literal, str]) -> None:
        self._source, self._text, self._tree, self._run, self._names = source, text, tree, run, names
        module = read_module(source, _rewritten(text, tree, names, {}))
        self._possible = {one for one, name in names.items() if name in module.parameters}
        self._module = module
        self._usual = run(module, {})
        self._found: dict[tuple[_Literal, ...], Shapes | None] = {}

    def is_possible(self, literal: _Literal) -> bool:
        """Whether a size can give it: it is not kept from the import."""
        return literal in self._possible

    def axes_vary(self, some: Sequence[_Literal]) -> bool:
        """Whether other shapes come of another value of all of these."""
        return self._other(some) is not None

    def axis_of(self, some: Sequence[_Literal]) -> tuple[str, int] | None:
        """The first axis of an input that follows these."""
        other = self._other(some)
        return None if other is None or self._usual is None else self._usual.changed_axis(other)

    def vary_with(self, some: Sequence[_Literal], name: str) -> bool:
        """Whether other shapes come of another value of these and of a number of the module."""
        tied = read_module(self._source, _rewritten(self._text, self._tree, dict.fromkeys(some, name), {name: 0}))
        return self._shapes_of(tied, [name], some[0].value) is not None

    def _other(self, some: Sequence[_Literal]) -> Shapes | None:
        key = tuple(some)
        if key not in self._found:
            self._found[key] = self._shapes_of(self._module, [self._names[one] for one in some], some[0].value)
        return self._found[key]

    def _shapes_of(self, module: ModuleText, names: Sequence[str], value: int) -> Shapes | None:
        for other in (value + 1, 2 * value, value // 2):
            shapes = self._run(module, dict.fromkeys(names, other))
            if shapes is not None and self._usual is not None and shapes.is_like(self._usual) and shapes != self._usual:
                return shapes
        return None


def _literals(tree: ast.Module) -> Iterator[_Literal]:
    """Whole numbers that may be extents, in the order of the text."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == FUNCTIONS[0]:
            yield from _within(ast.Module(node.body, []), "extent")
        elif isinstance(node, ast.FunctionDef) and node.name == FUNCTIONS[1]:
            yield from _given_to_model(node, _arguments_of_model(tree))
        elif isinstance(node, ast.Assign) and isinstance(node.value, COLLECTIONS):
            target = node.targets[0]
            if not isinstance(target, ast.Name) or target.id == SIZES:
                continue
            for at, literal in enumerate(_within(node.value, target.id)):
                yield replace(literal, called=f"{literal.called}_{at}")


def _given_to_model(function: ast.FunctionDef, arguments: Sequence[str]) -> Iterator[_Literal]:
    """Those of `get_init_inputs`, called as the arguments of `Model` that they are."""
    for statement in function.body:
        given = statement.value if isinstance(statement, ast.Return) else statement
        parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
        for at, part in enumerate(parts):
            if isinstance(part, ast.Dict):
                for key, value in zip(part.keys, part.values, strict=True):
                    yield from _within(value, _key(key))
            elif part is not None:
                yield from _within(part, arguments[at] if len(parts) > 1 and at < len(arguments) else f"init_{at}")


def _key(key: ast.expr | None) -> str:
    """What a value of a dictionary is called."""
    name = key.value if isinstance(key, ast.Constant) else None
    return name if isinstance(name, str) and name.isidentifier() and not iskeyword(name) else "init"


def _arguments_of_model(tree: ast.Module) -> list[str]:
    model = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model")
    made = next((one for one in model.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    return [] if made is None else [one.arg for one in made.args.args[1:]]


def _within(node: ast.AST, called: str) -> Iterator[_Literal]:
    """Literals that stand for themselves: not in indices, nor in arithmetic with what has a name."""
    number = number_of(node) if isinstance(node, ast.expr) else None
    if number is not None:
        assert isinstance(node, ast.expr)
        if isinstance(number, int) and number > 1 and node.lineno == node.end_lineno and node.end_col_offset:
            yield _Literal(Piece(node.lineno, node.col_offset, node.end_col_offset), number, called)
    elif not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Subscript | ast.JoinedStr | ast.Compare | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _within(child, called)


def _global_names(source: Path, text: str) -> set[str]:
    """Names that mean something in the whole module, or in the functions whose literals get one."""
    tables = [symtable.symtable(text, str(source), "exec")]
    taken = {*dir(builtins), *TAKEN}
    for table in tables:
        tables += table.get_children()
        every = table.get_type() == "module" or table.get_name() in FUNCTIONS
        taken |= {one.get_name() for one in table.get_symbols() if every or one.is_global()}
    return taken


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken; it is from then on."""
    name = unused(name, taken)
    taken.add(name)
    return name


def _first_statement(tree: ast.Module) -> ast.stmt | None:
    """The first one that another can precede on its line; None where it is compound."""
    ours = (
        one
        for at, one in enumerate(tree.body)
        if not (isinstance(one, ast.ImportFrom) and one.module == "__future__")
        and not (at == 0 and isinstance(one, ast.Expr))
    )
    first = next(ours, None)
    compound = ast.FunctionDef | ast.ClassDef | ast.If | ast.For | ast.While | ast.With | ast.Try
    return None if isinstance(first, compound) else first


def _rewritten(text: str, tree: ast.Module, named: Mapping[_Literal, str], own: Mapping[str, int]) -> str:
    """The text with names in the place of literals, on the lines that it had; names that are its own are defined."""
    first = _first_statement(tree)
    assert first is not None
    values = {name: literal.value for literal, name in named.items() if name not in own}
    before_first = Piece(first.lineno, first.col_offset, first.col_offset)
    defined = "".join(f"{name} = {value}; " for name, value in values.items())
    return with_pieces(text, {before_first: defined} | {literal.piece: name for literal, name in named.items()})
