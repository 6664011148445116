"""What is read off the text of a KernelBench module, and the text with its functions taking a size."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.problems.python_source import parse_python

_FUNCTIONS = ("get_inputs", "get_init_inputs")
_TAKES_SIZE = "globals().update(SIZES["
"""What both functions begin with, the name of their argument, and `_OF_SIZE`."""
_OF_SIZE = "], **SCALARS)"
_BY_TEXT = frozenset({"globals", "locals", "vars", "eval", "exec", "getattr"})
"""Whoever reads these may read any name."""


@dataclass(frozen=True)
class ModuleText:
    """What is read off the text.

    Attributes:
        text: of the module, its functions taking a size.
        parameters: whole numbers by name.
        scalars: fractions by name.
    """

    text: str
    parameters: Mapping[str, int]
    scalars: Mapping[str, float]

    def line_of_source(self, line: int) -> int:
        """The line of the file that a line of the text was, which has lines of ours above it."""
        return line - sum(one.strip().startswith(_TAKES_SIZE) for one in self.text.split("\n")[:line])


def read_module(source: Path, text: str) -> ModuleText:
    """Numbers that nothing reads are no parameters. Raises ProblemError where it is no KernelBench module."""
    try:
        tree = parse_python(text, str(source))
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{source} is not valid Python: {error}", hint="correct the file") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in ("Model", *_FUNCTIONS) if name not in defined]
    if missing:
        raise ProblemError(
            f"{source} does not define {', '.join(missing)}", hint="give a module such as KernelBench's, or a directory"
        )
    frozen, read = set(_read_on_import(tree)), set(_loaded(tree))
    numbers = {
        name: value for name, value in _numbers(tree) if name not in frozen and (name in read or read & _BY_TEXT)
    }
    parameters = {name: value for name, value in numbers.items() if isinstance(value, int) and value >= 0}
    scalars = {name: value for name, value in numbers.items() if isinstance(value, float)}
    return ModuleText(_taking_sizes(source, tree, text), parameters, scalars)


def _numbers(tree: ast.Module) -> Iterator[tuple[str, int | float]]:
    """Numbers that are assigned once, and to one name, at the top level."""
    targets = [target for node in tree.body for target in _targets(node)]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
                pairs += zip(names, values, strict=True)
            case ast.Assign(targets=names, value=value):
                pairs += ((name, value) for name in names)
            case ast.AnnAssign(target=name, value=ast.expr() as value):
                pairs.append((name, value))
    for target, value in pairs:
        number = _number(value)
        if isinstance(target, ast.Name) and targets.count(target.id) == 1 and number is not None:
            yield target.id, number


def _number(node: ast.expr) -> int | float | None:
    """What arithmetic on literals comes to; None for anything else."""
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return value  # type: ignore[return-value]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None else -number
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Sub() as op, right=right):
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return None
            return one * other if isinstance(op, ast.Mult) else one + other if isinstance(op, ast.Add) else one - other
    return None


def _targets(node: ast.stmt) -> Iterator[str]:
    for inner in ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef) else ():
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id


def _read_on_import(tree: ast.Module) -> Iterator[str]:
    """Names that are read while the module is imported: in its statements, and in defaults of functions."""
    parts: list[ast.AST] = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            parts += [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
        if isinstance(node, ast.ClassDef):
            parts += [part for part in node.body if not isinstance(part, ast.FunctionDef)]
    for part in parts:
        yield from _loaded(part)


def _loaded(part: ast.AST) -> Iterator[str]:
    for inner in ast.walk(part):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def _taking_sizes(source: Path, tree: ast.Module, text: str) -> str:
    """The text with both functions taking a size, whose numbers they put in the place of the module's own."""
    # Lines and columns are those of `ast`: it counts bytes, and takes neither a form feed nor U+2028 for a line's end.
    lines = text.encode().removesuffix(b"\n").split(b"\n")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS]
    size = _argument(tree)
    for node in sorted(functions, key=lambda function: -function.lineno):
        _begin_with_size(lines, node, size)
        _take_size(source, lines, node, size)
    return (b"\n".join(lines) + b"\n\n\n").decode()


def _argument(tree: ast.Module) -> str:
    """`size`, or what is no name of the module: as an argument it would hide that."""
    return unused("size", {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})


def unused(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores as make it one that is not taken."""
    while name in taken:
        name += "_"
    return name


def _begin_with_size(lines: list[bytes], node: ast.FunctionDef, size: str) -> None:
    begin = f"{_TAKES_SIZE}{size}{_OF_SIZE}"
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    at, column = (decorators[0] if decorators else first).lineno - 1, first.col_offset
    before, after = lines[at][:column], lines[at][column:]
    if before.strip():
        lines[at] = before + f"{begin}; ".encode() + after
    else:
        lines.insert(at, before + begin.encode())


def _take_size(source: Path, lines: list[bytes], node: ast.FunctionDef, size: str) -> None:
    """Give a function its argument. Raises ProblemError where it has one."""
    rest = b"\n".join([lines[node.lineno - 1][node.col_offset :], *lines[node.lineno : node.body[0].lineno]])
    head = re.match(rb"def[ \t]+\w+[ \t]*\((?=(\s|\\\n|#[^\n]*\n)*\))", rest)
    if head is None:
        raise ProblemError(
            f"{source}:{node.lineno}: {node.name} takes arguments",
            hint=f"write `def {node.name}():`, and read numbers that are assigned at the file's top level",
        )
    at = node.col_offset + head.end()
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[:at] + f'{size}="{StandardWorkload.FULL}"'.encode() + line[at:]
