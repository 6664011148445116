"""The operator family of a module that inherits its forward: it is read off the method where there is one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernelblaster.problems.families import family_of_source
from kernelblaster.problems.python_source import parse_python

_DECLARED = "OP_FAMILY"


def inherited_family(text: str) -> str:
    """What declares it below a module; nothing where `Model` has a forward of its own, or none that is known."""
    tree = parse_python(text)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    model = classes["Model"]
    if any(_is_forward(part) for part in model.body) or any(_declares(node) for node in tree.body):
        return ""
    whole = ast.ClassDef("Model", bases=[], keywords=[], decorator_list=[], body=list(_members(model, classes, set())))
    others = [node for node in tree.body if node is not model]
    try:
        family = family_of_source(ast.unparse(ast.Module([*others, whole], type_ignores=[])))
    except ValueError:
        return ""
    return f'{_DECLARED} = "{family}"\n\n\n'


def _members(part: ast.ClassDef, classes: dict[str, ast.ClassDef], seen: set[str]) -> Iterator[ast.stmt]:
    """Of a class and of those that it is made of, the nearest first; one of another file is called in a forward."""
    seen.add(part.name)
    yield from part.body
    for base in part.bases:
        name = ast.unparse(base)
        if name in classes and name not in seen:
            yield from _members(classes[name], classes, seen)
        elif name not in classes:
            yield from ast.parse(f"def forward(self, x):\n    return {name}()(x)").body


def _is_forward(part: ast.stmt) -> bool:
    return isinstance(part, ast.FunctionDef) and part.name == "forward"


def _declares(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(it, ast.Name) and it.id == _DECLARED for it in node.targets)
