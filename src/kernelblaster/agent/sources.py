"""Reading sources as prompts need them: trimmed references, code without comments."""

from __future__ import annotations

import ast
from functools import lru_cache

from kernelblaster.cuda_source.lexer import TokenKind, tokens
from kernelblaster.problems.python_source import parse_python
from kernelblaster.problems.tensor_declarations import NAMES

_DECLARATIONS = frozenset({"SIZES", "SCALARS", "OP_FAMILY", *NAMES})


def strip_comments(source: str) -> str:
    """C++ source with a blank in place of each comment; literals are kept, blank lines are dropped."""
    bare = "".join(
        " " if token.kind is TokenKind.COMMENT else source[token.start : token.end] for token in tokens(source)
    )
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


@lru_cache(maxsize=256)
def trimmed_reference(text: str, limit: int) -> str:
    """What a `reference.py` computes, at most `limit` characters: without comments, docstrings and example inputs.

    Sizes and inputs are told elsewhere in a prompt. Text that does not parse as Python is only cut.
    """
    try:
        tree = parse_python(text)
    except SyntaxError:
        return _cut(text, limit)
    tree.body = [node for node in tree.body if not _is_scaffolding(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return _cut(ast.unparse(tree), limit)


def trimmed_driver(text: str, limit: int) -> str:
    """What a self-checking `driver.cpp` computes and compares, about `limit` characters: no comments, no includes."""
    lines = (line for line in strip_comments(text).splitlines() if not line.lstrip().startswith("#"))
    return cut_middle("\n".join(lines), limit)


def _is_scaffolding(node: ast.stmt) -> bool:
    """Whether a top-level statement is told elsewhere in a prompt: declarations and example inputs."""
    if isinstance(node, ast.FunctionDef):
        return node.name == "get_inputs"
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id in _DECLARATIONS for target in targets)


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        node.body = node.body[1:] or [ast.Pass()]


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[:limit].rsplit("\n", 1)[0]
    return f"{kept}\n# (cut: {len(text) - len(kept)} of {len(text)} characters are not shown)"


def cut_middle(text: str, limit: int) -> str:
    """The head and the tail of a log, at most about `limit` characters; the first error and the last line matter."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}\n[... {len(text) - limit} characters ...]\n{text[head - limit :]}"
