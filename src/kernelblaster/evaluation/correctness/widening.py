"""16-bit operations that torch has on a GPU alone, on the host: PyTorch's plain implementation needs every one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class Widened(TorchDispatchMode):
    """While it is entered, an operation that torch lacks for a type is computed in float32 and rounded to that type."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._dtype = dtype

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        given = (args, kwargs or {})
        try:
            return func(*given[0], **given[1])
        except RuntimeError as error:
            if not lacking(error) or func._schema.is_mutable:
                raise
        wide = tree_map_only(torch.Tensor, lambda one: one.float() if one.dtype is self._dtype else one, given)
        return tree_map_only(
            torch.Tensor,
            lambda one: one.to(self._dtype) if one.dtype is torch.float32 else one,
            func(*wide[0], **wide[1]),
        )


def lacking(error: RuntimeError) -> bool:
    """Whether torch says that it has no such operation for the type, or on the device."""
    return "not implemented" in str(error) or "not supported" in str(error)
