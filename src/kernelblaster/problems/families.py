"""Operator families: the small vocabulary over which experience generalises from one problem to another.

A family is declared by the problem's reference (`OP_FAMILY = "softmax"` at its top level) or read off the calls in the
source of its `forward`. A problem's number or name says nothing about its family here, and nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from kernelblaster.cuda_source.lexer import blank_comments_and_literals
from kernelblaster.errors import ProblemError
from kernelblaster.problems.python_source import parse_python


class OpFamily(StrEnum):
    """What kind of computation a problem is, by its access pattern and reuse."""

    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    NORMALIZATION = "normalization"
    SOFTMAX = "softmax"
    SCAN = "scan"
    POOLING = "pooling"
    CONVOLUTION = "convolution"
    MATMUL = "matmul"
    MATVEC = "matvec"
    ATTENTION = "attention"
    FUSED_MATMUL = "fused_matmul"
    """Matrix products or convolutions with elementwise work, reductions or normalizations around them."""
    LOSS = "loss"
    MLP = "mlp"
    """Several matrix products in a row."""
    STENCIL = "stencil"
    SPARSE = "sparse"
    FFT = "fft"
    SORT = "sort"
    GATHER = "gather"
    PAIRWISE = "pairwise"
    CRYPTO = "crypto"
    """From here on by declaration alone; the words are those of `problems.tags`."""


_CALLS: dict[OpFamily, str] = {
    OpFamily.ATTENTION: r"scaleddotproductattention|multiheadattention",
    OpFamily.CONVOLUTION: r"conv|convtranspose",
    OpFamily.MATMUL: r"matmul|mm|bmm|linear|einsum|addmm|baddbmm",
    OpFamily.MATVEC: r"mv|addmv",
    OpFamily.LOSS: r".*loss|.*crossentropy.*|kldiv|cosinesimilarity",
    OpFamily.SOFTMAX: r"softmax|logsoftmax|softmin|logsumexp",
    OpFamily.NORMALIZATION: r"(layer|batch|group|instance|rms|localresponse)norm|norm|normalize|vectornorm",
    OpFamily.SCAN: r"cumsum|cumprod|cummax|cummin|logcumsumexp",
    OpFamily.POOLING: r"(adaptive)?(max|avg|lp)pool",
    OpFamily.REDUCTION: r"sum|mean|max|min|amax|amin|prod|argmax|argmin|topk|kthvalue|var|std|median|any|all",
}
"""Normalised call name -> family; a call that matches none is elementwise, or moves no data."""

_MOVES_NO_DATA = re.compile(
    r"view|reshape|permute|transpose|unsqueeze|squeeze|flatten|contiguous|expand|expandas|size|dim|t|to|chunk|split|"
    r"cat|stack|triu|tril|diag|flip|narrow|select|zeros|zeroslike|ones|oneslike|fulllike|arange|dropout|identity|"
    r"sequential|modulelist|parameter|len|range|int|float|super|forward|init|tensor|randn|rand|numel|append|type"
)
_LIBTORCH_CALL = re.compile(r"\b(?:torch|at|functional|F)::(\w+)\s*\(")
_TARGET = re.compile(r"targets?|labels?")
_MODEL = "Model"
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


def family_of(reference: Path) -> OpFamily:
    """Family of the problem whose `reference.py` this is.

    Raises:
        ProblemError: the file cannot be read or parsed, or declares a family that does not exist.
    """
    try:
        return family_of_source(reference.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise ProblemError(
            f"{reference}: cannot tell the operator family: {error}",
            hint=f"declare OP_FAMILY = one of {', '.join(OpFamily)}",
        ) from error


def family_of_source(source: str) -> OpFamily:
    """Family declared by, or read off, the source of a reference. Raises SyntaxError or ValueError."""
    tree = parse_python(source)
    declared = _declared(tree)
    if declared is not None:
        return OpFamily(declared)
    forward = _forward(tree)
    if forward is None:
        raise ValueError("no class Model with a method forward")
    calls = Counter(_classified(name) for name in _call_names(tree, forward))
    return _decide(calls, forward, tree)


def family_of_driver(driver: str) -> OpFamily:
    """Family of a self-checking problem, read off the calls into libtorch that its `driver.cpp` makes."""
    code = blank_comments_and_literals(driver)
    calls = [name for name in _LIBTORCH_CALL.findall(code) if _classified(name) in _CALLS]
    body = "".join(f"        torch.{name}()\n" for name in calls)
    return family_of_source(f"class Model:\n    def forward(self):\n        pass\n{body}")


def _declared(tree: ast.Module) -> str | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="OP_FAMILY")], value=ast.Constant(value=str(value))):
                return value
    return None


def _model(tree: ast.Module) -> ast.ClassDef | None:
    """`Model`, with what it inherits."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if _MODEL not in classes:
        return None
    return ast.ClassDef(_MODEL, bases=[], keywords=[], decorator_list=[], body=list(_members(_MODEL, classes)))


def _members(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[ast.stmt]:
    """Of a class, then of those that it is made of; a layer that is defined elsewhere is called in a forward."""
    others = {other: node for other, node in classes.items() if other != name}
    yield from classes[name].body
    for base in map(ast.unparse, classes[name].bases):
        if base in others:
            yield from _members(base, others)
        elif not base.endswith("Module"):
            yield from ast.parse(f"def forward(self, x):\n    return {base}()(x)").body


def _forward(tree: ast.Module) -> ast.FunctionDef | None:
    model = _model(tree)
    methods = model.body if model is not None else []
    return next((it for it in methods if isinstance(it, ast.FunctionDef) and it.name == "forward"), None)


def _call_names(tree: ast.Module, forward: ast.FunctionDef) -> Iterator[str]:
    """Names of what `forward` calls; a call of `self.x` stands for the modules that `self.x` was built from."""
    modules = _modules(tree)
    for node in ast.walk(forward):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attribute)):
                yield from modules.get(attribute, [])
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.BinOp(op=ast.MatMult()):
                yield "matmul"
            case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
                yield type(op).__name__


def _modules(tree: ast.Module) -> dict[str, list[str]]:
    """Attribute of the model -> names of the calls it is built from, by way of local lists where it is."""
    model = _model(tree)
    if model is None:
        return {}
    locals_: dict[str, list[str]] = {}
    modules: dict[str, list[str]] = {}
    for target, value, repeated in _assignments(model, repeated=False):
        names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
        built = [*_built(value, repeated), *(call for name in names for call in locals_.get(name, []))]
        match target:
            case ast.Name(id=name):
                locals_.setdefault(name, []).extend(built)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                modules.setdefault(attribute, []).extend(built)
    return modules


def _assignments(node: ast.AST, *, repeated: bool) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """(target, value, whether inside a loop) of every assignment and `target.append(value)`, in source order."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                yield target, value, repeated
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value, repeated
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="append" | "extend"), args=[value])):
                yield target, value, repeated
            case _:
                yield from _assignments(child, repeated=repeated or isinstance(child, ast.For | ast.While))


def _built(value: ast.expr, repeated: bool) -> Iterator[str]:
    """Names of the calls in an expression; twice inside a loop or comprehension, which stands for several."""
    comprehended = any(isinstance(node, ast.comprehension) for node in ast.walk(value))
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            yield from [name] * (2 if repeated or comprehended else 1)


def _classified(name: str) -> OpFamily | None:
    """Family of one call; None when it moves no data."""
    plain = re.sub(r"[123]d$", "", name.replace("_", "").lower())
    for family, pattern in _CALLS.items():
        if re.fullmatch(pattern, plain):
            return family
    return None if _MOVES_NO_DATA.fullmatch(plain) else OpFamily.ELEMENTWISE


def _decide(calls: Counter[OpFamily | None], forward: ast.FunctionDef, tree: ast.Module) -> OpFamily:
    """The family of the whole from those of its calls: the costliest kind of work names it."""
    products = calls[OpFamily.MATMUL] + calls[OpFamily.CONVOLUTION]
    around = calls.total() - products - calls[None]
    if calls[OpFamily.ATTENTION] or (calls[OpFamily.MATMUL] >= 2 and calls[OpFamily.SOFTMAX]):
        return OpFamily.ATTENTION
    if calls[OpFamily.MATMUL] >= 2 and not calls[OpFamily.CONVOLUTION]:
        return OpFamily.MLP
    if products:
        if around or products > 1:
            return OpFamily.FUSED_MATMUL
        if calls[OpFamily.CONVOLUTION]:
            return OpFamily.CONVOLUTION
        return OpFamily.MATVEC if _has_column_input(tree) else OpFamily.MATMUL
    if calls[OpFamily.REDUCTION] and _takes_targets(forward):
        return OpFamily.LOSS
    if calls[OpFamily.REDUCTION] and any(isinstance(node, ast.Div) for node in ast.walk(forward)):
        return OpFamily.NORMALIZATION
    return next((family for family in _CALLS if calls[family]), OpFamily.ELEMENTWISE)


def _takes_targets(forward: ast.FunctionDef) -> bool:
    return any(_TARGET.fullmatch(argument.arg) for argument in forward.args.args)


def _has_column_input(tree: ast.Module) -> bool:
    """Whether `get_inputs` makes a tensor whose last extent is the literal 1."""
    makers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "get_inputs"]
    for node in (inner for maker in makers for inner in ast.walk(maker)):
        match node:
            case ast.Call(args=[_, *_, ast.Constant(value=1)]):
                return True
    return False
