"""Torch's meta device, where a module is run for the shapes of its results alone.

There torch takes many calls apart in Python, a tenth of a millisecond each: the shapes of a hash of thousands of bit
operations took longer than the hash. Here elementwise arithmetic on contiguous tensors, and random integers, give a
tensor of the right shape and type at once; so do recurrent layers, where torch would go through every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_WITH_CELLS = torch._VF.lstm
_RECURRENT = tuple(getattr(torch._VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_OF_SEQUENCES = 9
"""Arguments of such a function for sequences of one length: input, states, weights, biases or not, layers, dropout,
training, both directions or one, batch first. Packed sequences come with other ones, and go through every step."""
_BITWISE = frozenset(
    getattr(torch.Tensor, name)
    for name in (
        *("__and__", "__rand__", "__or__", "__ror__", "__xor__", "__rxor__"),
        *("__lshift__", "__rlshift__", "__rshift__", "__rrshift__"),
    )
)
_ARITHMETIC = frozenset(
    getattr(torch.Tensor, name)
    for name in ("add", "sub", "mul", "__add__", "__radd__", "__sub__", "__mul__", "__rmul__", "minimum", "maximum")
) | {torch.add, torch.sub, torch.mul, torch.minimum, torch.maximum}
"""With `_BITWISE`, functions of two operands whose result has the type that torch's promotion gives the two."""
_OF_ONE = frozenset((torch.Tensor.__invert__, torch.Tensor.neg, torch.Tensor.__neg__))


class ElementwiseShapes(TorchFunctionMode):
    """Replaces elementwise arithmetic and random integers on the meta device by tensors of the shapes they would give.

    Args:
        passed: told operands and result of arithmetic, of which torch's dispatcher does not hear.
    """

    def __init__(self, passed: Callable[[Sequence[Any], torch.Tensor], object] = lambda operands, result: None) -> None:
        super().__init__()
        self._passed = passed

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if not kwargs and (func in _BITWISE or func in _ARITHMETIC or func in _OF_ONE):
            result = _elementwise(func, args)
            if result is not None:
                self._passed(args, result)
                return result
        elif func is torch.randint:
            return _drawn(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class _ShapesOfRecurrence(TorchFunctionMode):
    """Replaces recurrent layers on the meta device by tensors of the shapes they would give."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func not in _RECURRENT or len(args) != _OF_SEQUENCES or not isinstance(args[8], bool) or not args[0].is_meta:
            return func(*args, **(kwargs or {}))
        given, states, both = args[0], args[1], args[7]
        hidden = states[0] if func is _WITH_CELLS else states
        output = given.new_empty((*given.shape[:-1], (2 if both else 1) * hidden.shape[-1]))
        return (output, *(state.clone() for state in states)) if func is _WITH_CELLS else (output, hidden.clone())


def _elementwise(func: Callable[..., Any], args: Sequence[Any]) -> torch.Tensor | None:
    """The result's like of contiguous tensors and of numbers; None for anything else, which torch knows better."""
    if len(args) != (1 if func in _OF_ONE else 2):
        return None
    tensors = [one for one in args if isinstance(one, torch.Tensor)]
    if len(tensors) < len(args) and not all(isinstance(one, torch.Tensor | int | float) for one in args):
        return None
    with torch._C.DisableTorchFunction():  # else modes hear of every look at a shape
        first, last = tensors[0], tensors[-1]
        if not (first.is_meta and last.is_meta) or first.shape != last.shape:
            return None
        # Of one axis the result is contiguous whatever the operands are; of several it follows them.
        if first.dim() != 1 and not (first.is_contiguous() and last.is_contiguous()):
            return None
        kind = first.dtype if func in _OF_ONE else torch.result_type(*args)
        bits = func in _BITWISE or func is torch.Tensor.__invert__
        if torch.bool in (first.dtype, last.dtype) or (bits and kind.is_floating_point):
            return None
        return torch.empty(first.shape, dtype=kind, device="meta")


def _drawn(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`torch.randint` of a low and a high number, or of a high one alone, and a shape."""
    *bounds, size = args
    known = isinstance(size, tuple | list) and 1 <= len(bounds) <= 2 and set(kwargs) <= {"dtype"}
    if not known or torch.get_default_device().type != "meta":
        return func(*args, **kwargs)
    return torch.empty(size, dtype=kwargs.get("dtype") or torch.int64, device="meta")


@contextmanager
def shapes_only() -> Iterator[None]:
    """New tensors lie on the meta device and nothing is computed. The caller holds `reference.TORCH`."""
    with torch.device("meta"), torch.no_grad(), _ShapesOfRecurrence(), ElementwiseShapes():
        yield
