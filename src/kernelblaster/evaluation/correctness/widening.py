"""What runs of a reference do otherwise than torch: operations in float32, and products that are rounded.

The plain implementation in 16 bits takes some operations in float32, as an honest kernel does: those that torch lacks
for the type on this device, and scans. On a GPU torch adds these up in the storage type, so that errors of hundreds of
roundings would become the budget, where on the host it does in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

_ATEN = torch.ops.aten
_SCANS = frozenset({_ATEN.cumsum, _ATEN.cumprod, _ATEN.logcumsumexp})
_PRODUCTS = frozenset({_ATEN.mm, _ATEN.addmm, _ATEN.bmm, _ATEN.baddbmm, _ATEN.convolution})


class Widened(TorchDispatchMode):
    """While it is entered, such operations of a type are computed in float32 and rounded to that type."""

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
        if func.overloadpacket not in _SCANS or func._schema.is_mutable:
            try:
                return func(*given[0], **given[1])
            except RuntimeError as error:
                if not _lacking(error) or func._schema.is_mutable:
                    raise
        wide = tree_map_only(torch.Tensor, lambda one: one.float() if one.dtype is self._dtype else one, given)
        return tree_map_only(
            torch.Tensor,
            lambda one: one.to(self._dtype) if one.dtype is torch.float32 else one,
            func(*wide[0], **wide[1]),
        )


class Jittered(TorchDispatchMode):
    """While it is entered, results of products are off by random relative errors of at most `size`.

    An honest kernel rounds them to its format, or not, and after more or fewer operations than PyTorch. Another `seed`
    gives other errors.
    """

    def __init__(self, size: float, device: torch.device, seed: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._size = size
        self._random = torch.Generator(device).manual_seed(seed)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket not in _PRODUCTS or not isinstance(result, torch.Tensor):
            return result
        noise = torch.rand(result.shape, generator=self._random, dtype=torch.float64, device=result.device)
        return (result.double() * (1 + self._size * (2 * noise - 1))).to(result.dtype)


def _lacking(error: RuntimeError) -> bool:
    """Whether torch says that it has no such operation for the type, or on the device."""
    return "not implemented" in str(error) or "not supported" in str(error)
