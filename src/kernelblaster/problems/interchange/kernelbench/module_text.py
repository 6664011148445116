"""What is read off the text of a KernelBench module, and the text with its functions taking a size."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.declared_sizes import declared_sizes
from kernelblaster.problems.interchange.kernelbench.module_numbers import read_numbers
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.problems.python_source import parse_python

FUNCTIONS = ("get_inputs", "get_init_inputs")
"""Those that take a size."""
_TAKES_SIZE = "globals().update(SIZES["
"""What both functions begin with, the name of their argument, and `_OF_SIZE`; a line that begins so is ours."""
_OF_SIZE = "], **SCALARS)"
_SIZED = "_sized"
"""The function that they call instead where something follows from numbers."""


@dataclass(frozen=True)
class ModuleText:
    """What is read off the text.

    Attributes:
        text: of the module, its functions taking a size.
        parameters: whole numbers by name.
        scalars: fractions by name.
        sizes: those that it declares, with the numbers that are others there.
        drawing: numbers that inputs are drawn with, and that nothing else reads.
    """

    text: str
    parameters: Mapping[str, int]
    scalars: Mapping[str, float]
    sizes: Mapping[str, Mapping[str, int]]
    drawing: frozenset[str]

    def line_of_source(self, line: int) -> int:
        """The line of the file that a line of the text was, which has lines of ours above it."""
        return line - sum(one.strip().startswith((_TAKES_SIZE, _SIZED)) for one in self.text.split("\n")[:line])


def read_module(source: Path, text: str) -> ModuleText:
    """Numbers that nothing reads are no parameters. Raises ProblemError where it is no KernelBench module."""
    try:
        tree = parse_python(text, str(source))
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{source} is not valid Python: {error}", hint="correct the file") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    missing = [name for name in ("Model", *FUNCTIONS) if name not in defined]
    if missing:
        raise ProblemError(
            f"{source} does not define {', '.join(missing)}", hint="give a module such as KernelBench's, or a directory"
        )
    numbers = read_numbers(tree)
    sized = _taking_sizes(source, tree, text, numbers.followers)
    return ModuleText(sized, numbers.parameters, numbers.scalars, declared_sizes(tree), numbers.drawing)


def _taking_sizes(source: Path, tree: ast.Module, text: str, followers: Mapping[str, str]) -> str:
    """The text with both functions taking a size, whose numbers they put in the place of the module's own."""
    # Lines and columns are those of `ast`: it counts bytes, and takes neither a form feed nor U+2028 for a line's end.
    lines = text.encode().removesuffix(b"\n").split(b"\n")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS]
    size = _argument(tree)
    sized = unused(_SIZED, text)
    begin = f"{sized}({size})" if followers else f"{_TAKES_SIZE}{size}{_OF_SIZE}"
    for node in sorted(functions, key=lambda function: -function.lineno):
        _begin_with(begin, lines, node)
        _take_size(source, lines, node, size)
    below = _sizing(sized, size, followers) if followers else ""
    return (b"\n".join(lines) + b"\n\n\n").decode() + below


def _sizing(sized: str, size: str, followers: Mapping[str, str]) -> str:
    """The function that puts a size's numbers in the place of the module's own, and computes what follows again."""
    again = "".join(f"    globals().update({name}={expression})\n" for name, expression in followers.items())
    return f"def {sized}({size}):\n    {_TAKES_SIZE}{size}{_OF_SIZE}\n{again}\n\n"


def _argument(tree: ast.Module) -> str:
    """`size`, or what is no name of the module: as an argument it would hide that."""
    return unused("size", {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})


def unused(name: str, taken: Container[str]) -> str:
    """The name, with as many underscores as make it one that is not taken."""
    while name in taken:
        name += "_"
    return name


def _begin_with(begin: str, lines: list[bytes], node: ast.FunctionDef) -> None:
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
