"""How much memory a reference takes while it is run, found without taking it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kernelblaster.problems.problem import Problem
from kernelblaster.problems.reference import TORCH, blaming, load_reference
from kernelblaster.problems.shape_only import shapes_only

_DOUBLE = torch.float64.itemsize


def peak_bytes(problem: Problem, size: str) -> int:
    """The most that is held at once, inputs and weights included, where floating point is float64 as for a judge.

    Raises ProblemError where it does not run for its shapes alone.
    """
    reference, held = load_reference(problem), _Held()
    with TORCH, shapes_only(), held:
        model, given = reference.model(size), reference.inputs(size)
        blaming(problem, lambda: model(*given))
    return held.most


class _Held(TorchDispatchMode):
    """Adds up the storage of tensors that are alive."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most = 0
        self._now = 0
        self._users: dict[int, int] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, torch.Tensor) and not one.is_sparse:
                self._hold(one)
        return result

    def _hold(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        place = storage._cdata
        users = self._users.get(place, 0)
        self._users[place] = users + 1
        size = storage.nbytes() // tensor.element_size() * _DOUBLE if tensor.is_floating_point() else storage.nbytes()
        if not users:
            self._now += size
            self.most = max(self.most, self._now)
        weakref.finalize(tensor, self._release, place, size)

    def _release(self, place: int, size: int) -> None:
        self._users[place] -= 1
        if not self._users[place]:
            del self._users[place]
            self._now -= size
