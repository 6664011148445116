"""What a run of a reference chooses by values that were rounded: indices of the best, flags, steps of a quantisation.

A choice among what is equal up to rounding is luck, and what hangs on it jumps. `Choosing` finds out whether a result
with fractions can hang on one; `Choices` notes what a run chooses, and has another run choose the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from kernelblaster.evaluation.correctness.widening import ARITHMETIC

_STEPS = frozenset({"round", "floor", "ceil", "trunc", "sign", "heaviside", "floor_divide"})
_PICKS = frozenset({"topk", "sort", "max", "min", "kthvalue", "mode", "median", "nanmedian"})
"""They return values and the indices of these."""
_BESTS = _PICKS | {"argmax", "argmin"}
_APART = 2.0**-40
"""Relative to themselves, by what equal values are moved apart: less than any rounding in fp32."""
_LEAST = 2.0**-200
_ROUNDED, _CHOSEN = 1, 2


class Choosing(TorchDispatchMode):
    """While it is entered, notes whether floating-point values come of choices among rounded ones.

    Indices of a pooling that nothing uses, and a mask that comes of constants, are no such choice. What becomes of
    numbers that Python reads out of a tensor is not seen.

    Attributes:
        found: whether some do.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False
        self._levels: dict[int, int] = {}
        """Of each memory, by its address: nothing of it was rounded, some was, or was chosen by what was."""

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if self.found:
            return result
        given = {_address(one) for one in tree_leaves((args, kwargs or {})) if isinstance(one, torch.Tensor)}
        level = max((self._levels.get(address, 0) for address in given), default=0)
        rounds = func.overloadpacket in ARITHMETIC
        for one in tree_leaves(result):
            fraction = isinstance(one, torch.Tensor) and not _is_discrete(one)
            self.found |= level == _CHOSEN and (fraction or not isinstance(one, torch.Tensor))
            self.found |= level == _ROUNDED and fraction and _steps(func, kwargs)
            if isinstance(one, torch.Tensor):
                reached = (_ROUNDED if level or rounds else 0) if fraction else (_CHOSEN if level else 0)
                address = _address(one)
                self._levels[address] = max(reached, self._levels.get(address, 0) if address in given else 0)
        return result


class Choices(TorchDispatchMode):
    """While it is entered, notes what is chosen by floating-point values, or has it chosen as another run did.

    Then the values that belong to given indices are taken from this run.

    Args:
        given: `found` of the other run; None: this one chooses for itself.
        random: which of exactly equal values is the best is left to it; None: to torch.
        side: 1 or -1, by which the order of what is equal is reversed: of two equal values both are found so.

    Attributes:
        found: results of each choice, in their order.
        astray: whether this run chooses among other things than the given one.
    """

    def __init__(
        self, given: Sequence[torch.Tensor] | None = None, random: torch.Generator | None = None, side: int = 1
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[torch.Tensor] = []
        self._given = None if given is None else iter(given)
        self._random, self._side = random, side
        self.astray = False

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*self._moved_apart(func, args), **(kwargs or {}))
        leaves, structure = tree_flatten(result)
        for place in _chosen(func, args, kwargs, leaves):
            if self._given is None:
                self.found.append(leaves[place].clone())
            elif not self.astray:
                self._choose(leaves, place, self._given, func)
        chosen_for = self._given is not None or self._random is not None
        if chosen_for and _name(func) in _PICKS and len(leaves) == 2 and isinstance(args[0], torch.Tensor):
            leaves[0] = _values_at(args[0], leaves, _dimension(func, args, kwargs))
        return tree_unflatten(leaves, structure)

    def _moved_apart(self, func: torch._ops.OpOverload, args: tuple[object, ...]) -> tuple[object, ...]:
        """An operation's arguments, of those that choose the best with what they choose among moved apart."""
        if self._random is None or _name(func) not in _BESTS or not _along_a_dimension(func):
            return args
        values = args[0]
        if not isinstance(values, torch.Tensor) or not values.is_floating_point():
            return args
        noise = torch.rand(values.shape, generator=self._random, dtype=torch.float64, device=values.device)
        noise = self._side * (noise - 0.5)
        return (values.double() * (1 + _APART * noise) + _LEAST * noise, *args[1:])

    def same_as(self, other: Choices) -> bool:
        """Whether two runs chose the same."""
        pairs = zip(self.found, other.found, strict=False)
        return len(self.found) == len(other.found) and all(
            a.shape == b.shape and bool((a == b).all()) for a, b in pairs
        )

    def _choose(
        self, leaves: list[torch.Tensor], place: int, given: Iterator[torch.Tensor], func: torch._ops.OpOverload
    ) -> None:
        own, other = leaves[place], next(given, None)
        if other is None or other.shape != own.shape:
            self.astray = True
        elif func._schema.is_mutable:
            own.copy_(other)
        else:
            leaves[place] = other.to(own.dtype, copy=True)


def _chosen(
    func: torch._ops.OpOverload,
    args: tuple[object, ...],
    kwargs: dict[str, object] | None,
    leaves: Sequence[object],
) -> list[int]:
    """Places among an operation's results of those that are chosen by floating-point values."""
    name = _name(func)
    tensors = [(place, one) for place, one in enumerate(leaves) if isinstance(one, torch.Tensor)]
    if _steps(func, kwargs):
        return [place for place, one in tensors if one.is_floating_point()]
    if name.endswith("_like") or name.startswith("new_") or name == "view":
        return []
    given = tree_leaves((args, kwargs or {}))
    if not any(isinstance(one, torch.Tensor) and one.is_floating_point() for one in given):
        return []
    return [place for place, one in tensors if _is_discrete(one)]


def _values_at(values: torch.Tensor, leaves: Sequence[torch.Tensor], dimension: int | None) -> torch.Tensor:
    """What lies at the indices that are the second of two results, in place of the first."""
    own, indices = leaves
    if dimension is None or not values.ndim or _is_discrete(values):
        return own.to(values.dtype)
    kept = indices.ndim == values.ndim
    found = values.gather(dimension, indices if kept else indices.unsqueeze(dimension))
    return found if kept else found.squeeze(dimension)


def _dimension(func: torch._ops.OpOverload, args: tuple[object, ...], kwargs: dict[str, object] | None) -> int | None:
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dim":
            bound = args[place] if place < len(args) else (kwargs or {}).get("dim", argument.default_value)
            return bound if isinstance(bound, int) else None
    return None


def _along_a_dimension(func: torch._ops.OpOverload) -> bool:
    return not func._schema.is_mutable and any(argument.name == "dim" for argument in func._schema.arguments)


def _steps(func: torch._ops.OpOverload, kwargs: dict[str, object] | None) -> bool:
    """Whether an operation's floating-point results are steps."""
    return _name(func).removesuffix("_") in _STEPS or bool((kwargs or {}).get("rounding_mode"))


def _name(func: torch._ops.OpOverload) -> str:
    return func._schema.name.removeprefix("aten::")


def _is_discrete(one: torch.Tensor) -> bool:
    return not (one.is_floating_point() or one.is_complex())


def _address(one: torch.Tensor) -> int:
    return one.untyped_storage().data_ptr() if one.layout is torch.strided else 0
