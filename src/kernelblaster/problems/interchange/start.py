"""A starting kernel out of an imported solution, where its entry point takes plain pointers and numbers.

A solution for PyTorch or another framework takes tensors of that framework: it cannot be called without it, and is no
start. One that defines the launcher itself is a start as it is.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from kernelblaster.cuda_source.launcher import FunctionHead, HeadRole, function_heads
from kernelblaster.cuda_source.lexer import directives
from kernelblaster.problems.interchange.signature import LauncherSignature
from kernelblaster.problems.solution import Solution

_CUDA = frozenset({"cuda", "cuda_cpp", "cpp"})
_SHIPPED = "kernelblaster/scalar.cuh"
_PARAMETER = re.compile(r"(?P<type>.*[\s*&])(?P<name>[A-Za-z_]\w*)")
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_INTEGERS = re.compile(
    r"(?:const )?(?:unsigned )?(?:int|long|long long|(?:std::)?(?:u?int(?:32|64)_t|size_t)|unsigned)"
)
_FLOATS = re.compile(r"(?:const )?(?:float|double)")
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}


@dataclass(frozen=True)
class StartKernel:
    """A starting kernel and the solution it was made from."""

    source: str
    solution: str


def find_start(solutions: tuple[Solution, ...], signature: LauncherSignature) -> StartKernel | None:
    """The first solution that makes a starting kernel; None when none does."""
    for solution in solutions:
        if _CUDA.isdisjoint(solution.spec.written_in):
            continue
        source = _own_launcher(solution, signature) or _adapted(solution, signature)
        if source is not None:
            return StartKernel(source, solution.name)
    return None


def _own_launcher(solution: Solution, signature: LauncherSignature) -> str | None:
    """The file of a solution that defines this launcher, where it stands alone."""
    wanted = [_kind(kind) for kind in signature.types.values()]
    for file in solution.sources:
        defined = [head for head in function_heads(file.content) if head.role is HeadRole.DEFINITION]
        fits = any([_kind(_split(text)[0]) for text in head.parameters] == wanted for head in defined)
        if fits and not _includes(file.content, solution):
            return file.content.replace(f'#include "{_SHIPPED}"', f"#include <{_SHIPPED}>")
    return None


def _includes(source: str, solution: Solution) -> bool:
    """Whether a source includes another file of its solution, but for the header that is here as well."""
    others = {file.path for file in solution.sources if file.path != _SHIPPED}
    included = {one.operand[1:-1] for one in directives(source) if one.name == "include"}
    return any(other == name or other.endswith(f"/{name}") for other in others for name in included)


def _adapted(solution: Solution, signature: LauncherSignature) -> str | None:
    """The entry file with a launcher that calls its entry point; None where an argument is not known."""
    source, name = solution.entry_source, solution.entry_function
    if _includes(source, solution):
        return None
    head = next((one for one in function_heads(source, name) if one.role is HeadRole.DEFINITION), None)
    arguments = None if head is None else _arguments(head, signature)
    if arguments is None:
        return None
    call = f"    {name}({', '.join(arguments)});\n"
    return f"{source.rstrip()}\n\n{signature.declaration.removesuffix(';')} {{\n{call}}}\n"


def _arguments(head: FunctionHead, signature: LauncherSignature) -> list[str] | None:
    found = []
    for text in head.parameters:
        argument = _argument(*_split(text), signature)
        if argument is None:
            return None
        found.append(argument)
    return found


def _split(parameter: str) -> tuple[str, str]:
    """Type and name of a parameter; no name where it has none."""
    found = _PARAMETER.fullmatch(_RESTRICT.sub("", parameter).strip())
    return (" ".join(found["type"].split()), found["name"]) if found else (parameter.strip(), "")


def _kind(type_name: str) -> str:
    """What matters of a type to whoever calls through another declaration."""
    if type_name.endswith("*"):
        return "pointer"
    return "integer" if _INTEGERS.fullmatch(type_name) else type_name


def _argument(kind: str, name: str, signature: LauncherSignature) -> str | None:
    """What the launcher passes for a parameter of this type and name."""
    if kind == "cudaStream_t":
        return "nullptr"
    if kind.endswith("*") and name in signature.pointers:
        return f"static_cast<{kind}>({signature.pointers[name]})"
    if _INTEGERS.fullmatch(kind) and name in signature.integers:
        return _spelled(signature, name)
    if _FLOATS.fullmatch(kind) and name in signature.floats:
        return signature.floats[name]
    return None


def _spelled(signature: LauncherSignature, name: str) -> str | None:
    """An integer in C++: a parameter of the launcher, a constant, or arithmetic over both."""
    try:
        return _arithmetic(ast.parse(signature.integers[name], mode="eval").body, signature)
    except RecursionError:
        return None


def _arithmetic(node: ast.expr, signature: LauncherSignature) -> str | None:
    match node:
        case ast.Constant(value=int(value)):
            return str(value)
        case ast.Name(id=name):
            given = signature.integers.get(name)
            return name if given == name else (None if given is None else _spelled(signature, name))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            sides = [_arithmetic(side, signature) for side in (left, right)]
            return None if None in sides else f"({sides[0]} {_OPERATORS[type(op)]} {sides[1]})"
    return None
