"""Bounds and branches of a module's activations, and the module without one of them.

A clamp whose upper bound nothing passes, a leaky rectifier behind a rectifier, a GELU of large positive values: a
kernel may leave them out and be right. `branches_of` lists what there is while a module runs; `without` puts in the
place of one activation what it would be without one of its branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_SELU_SCALE = 1.0507009873554805

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
Without = Iterator[tuple[str, torch.Tensor]]
"""Names of branches, and what the activation gives without each."""


@dataclass(frozen=True)
class Branch:
    """One branch of one activation: which call of that name it is, from 1, while the module runs."""

    activation: str
    call: int
    branch: str

    def __str__(self) -> str:
        return f"{self.activation} {self.call}: {self.branch}"


def branches_of(run: Callable[[], object]) -> dict[Branch, float]:
    """All branches of the activations that `run` calls, and how far each result moves without it, as a share of it."""
    watch = _BranchWatch()
    with watch:
        run()
    return watch.effects


def without(branch: Branch) -> TorchFunctionMode:
    """A context manager in which that activation lacks that branch."""
    return _BranchWatch(branch)


class _BranchWatch(TorchFunctionMode):
    """Looks at every activation that is called, or puts another in the place of one."""

    def __init__(self, left_out: Branch | None = None) -> None:
        super().__init__()
        self.effects: dict[Branch, float] = {}
        self._left_out = left_out
        self._calls = Counter[str]()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        name = getattr(func, "__name__", "").rstrip("_")
        branches = _BRANCHES.get(name)
        operand = args[0] if args else None
        if branches is None or not isinstance(operand, torch.Tensor) or not operand.is_floating_point():
            return func(*args, **given)
        x = operand.detach().clone()  # it may be changed in place
        result = func(*args, **given)
        found = {} if not isinstance(result, torch.Tensor) else dict(branches(x, (args[1:], given)))
        if found:
            self._calls[name] += 1
            for branch, other in found.items():
                self._seen(Branch(name, self._calls[name], branch), result, other)
        return result

    def _seen(self, branch: Branch, result: torch.Tensor, other: torch.Tensor) -> None:
        if self._left_out is None:
            norm = float(result.norm())
            self.effects[branch] = float((other - result).norm()) / norm if norm else 0.0
        elif branch == self._left_out:
            result.copy_(other)


def _argument(given: Arguments, place: int, name: str, default: Any = None) -> Any:
    """An argument behind the tensor, by place or by name."""
    positional, named = given
    return positional[place] if place < len(positional) else named.get(name, default)


def _identity(x: torch.Tensor, _: Arguments) -> Without:
    yield "all but the identity", x


def _rectified(x: torch.Tensor, _: Arguments) -> Without:
    yield "zero", x


def _curved(x: torch.Tensor, _: Arguments) -> Without:
    yield "all but the identity", x
    yield "curve", x.clamp(min=0)


def _bounded(x: torch.Tensor, low: Any, high: Any) -> Without:
    if low is not None:
        yield "lower bound", x if high is None else torch.clamp(x, max=high)
    if high is not None:
        yield "upper bound", x if low is None else torch.clamp(x, min=low)


def _clamp(x: torch.Tensor, given: Arguments) -> Without:
    return _bounded(x, _argument(given, 0, "min"), _argument(given, 1, "max"))


def _hardtanh(x: torch.Tensor, given: Arguments) -> Without:
    return _bounded(x, _argument(given, 0, "min_val", -1.0), _argument(given, 1, "max_val", 1.0))


def _hardsigmoid(x: torch.Tensor, _: Arguments) -> Without:
    return _bounded(x / 6 + 0.5, 0.0, 1.0)


def _hardswish(x: torch.Tensor, _: Arguments) -> Without:
    for branch, factor in _bounded(x / 6 + 0.5, 0.0, 1.0):
        yield branch, x * factor


def _leaky(x: torch.Tensor, _: Arguments) -> Without:
    yield "slope", x


def _exponential(x: torch.Tensor, given: Arguments) -> Without:
    yield "negative branch", x


def _selu(x: torch.Tensor, _: Arguments) -> Without:
    yield "negative branch", _SELU_SCALE * x


def _tanh(x: torch.Tensor, _: Arguments) -> Without:
    yield "all but the identity", x
    yield "all but the sign", x.sign()


def _sigmoid(x: torch.Tensor, _: Arguments) -> Without:
    yield "all but a line", 0.5 + x / 4
    yield "all but the sign", (x.sign() + 1) / 2


def _either(x: torch.Tensor, given: Arguments) -> Without:
    """Of the smaller or greater of two tensors."""
    other = _argument(given, 0, "other")
    if isinstance(other, torch.Tensor) and other.is_floating_point():
        yield "first operand", other.expand(torch.broadcast_shapes(x.shape, other.shape))
        yield "second operand", x.expand(torch.broadcast_shapes(x.shape, other.shape))


_BRANCHES: Mapping[str, Callable[[torch.Tensor, Arguments], Without]] = {
    "abs": _rectified,
    "celu": _exponential,
    "clamp": _clamp,
    "clamp_max": lambda x, given: _bounded(x, None, _argument(given, 0, "max")),
    "clamp_min": lambda x, given: _bounded(x, _argument(given, 0, "min"), None),
    "clip": _clamp,
    "elu": _exponential,
    "gelu": _curved,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "hardtanh": _hardtanh,
    "leaky_relu": _leaky,
    "max": _either,
    "maximum": _either,
    "min": _either,
    "minimum": _either,
    "mish": _curved,
    "relu": _rectified,
    "relu6": lambda x, _: _bounded(x, 0.0, 6.0),
    "selu": _selu,
    "sigmoid": _sigmoid,
    "silu": _curved,
    "softplus": _identity,
    "tanh": _tanh,
}
