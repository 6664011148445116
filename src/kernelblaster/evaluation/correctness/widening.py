"""What runs of a reference do otherwise than torch: operations in float32, and results that are rounded.

The plain implementation in 16 bits takes some operations in float32, as an honest kernel does: those that torch lacks
for the type on this device, and scans. On a GPU torch adds these up in the storage type, so that errors of hundreds of
roundings would become the budget, where on the host it does in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

_ATEN = torch.ops.aten
_SCANS = frozenset({_ATEN.cumsum, _ATEN.cumprod, _ATEN.logcumsumexp})
PRODUCTS = frozenset({_ATEN.mm, _ATEN.addmm, _ATEN.bmm, _ATEN.baddbmm, _ATEN.convolution})
_ELEMENTWISE = ("add", "sub", "mul", "div", "reciprocal", "pow", "sqrt", "rsqrt", "lerp", "addcmul", "addcdiv")
_FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "erf")
_ACTIVATIONS = ("gelu", "silu", "mish", "elu", "softplus", "log_sigmoid_forward", "hardswish", "hardsigmoid")
_REDUCTIONS = ("sum", "mean", "prod", "var", "std", "var_mean", "norm", "linalg_vector_norm", "logsumexp", "dot", "mv")
_SOFTMAXES = ("_softmax", "_log_softmax")
_CANCELLING = PRODUCTS | {_ATEN.native_layer_norm, _ATEN.native_group_norm, _ATEN.native_batch_norm}
"""Products and centred values: their terms cancel."""
ARITHMETIC = (
    _SCANS
    | _CANCELLING
    | {getattr(_ATEN, name) for name in (*_ELEMENTWISE, *_FUNCTIONS, *_ACTIVATIONS, *_REDUCTIONS, *_SOFTMAXES)}
)
"""What rounds; what moves, compares or selects values does not."""
_VANISHING = frozenset({_ATEN.exp, _ATEN.exp2, _ATEN.sigmoid, _ATEN._softmax})
_LEAST = 2.0**-149
"""float32's smallest number."""
_OF_SUMS, _OF_TERMS = 8 * 2.0**-23, 8 * 2.0**-23
"""What fp32 loses at most where terms of a product are added in another order: of the root mean square of the product's
row or sample, and of the sum of all terms without their signs. Larger errors would not be
stricter: they average out what roundings that are alike at all elements do together."""
_UNITS, _UNITS_OF_PRODUCTS = 4.0, 16.0
"""Of float32's epsilon: by how much the results of a kernel's fp32 arithmetic may be off, next to themselves, and those
whose terms cancel next to the others of their row, too."""


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
        if func.overloadpacket not in PRODUCTS or not isinstance(result, torch.Tensor):
            return result
        noise = torch.rand(result.shape, generator=self._random, dtype=torch.float64, device=result.device)
        return (result.double() * (1 + self._size * (2 * noise - 1))).to(result.dtype)


class SummedOtherwise(TorchDispatchMode):
    """While it is entered, products are off at random as those of a kernel that adds their terms in another order.

    Only where float32 rounds their sums at all: coarse ones are exact in any order. They are rounded to their type.

    Args:
        size: largest relative error, before they are rounded, of those that their type cannot hold: a kernel may not
            round them there.
        one_sign: whether a thread may add terms of one sign, so that its sums are as large as all terms together.
        device: where it runs.
        seed: another one gives other errors.

    Attributes:
        moved: whether any product was off.
    """

    def __init__(self, size: float, *, one_sign: bool, device: torch.device, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._size, self._one_sign = size, one_sign
        self._random = torch.Generator(device).manual_seed(seed)
        self.moved = False

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        given = (args, kwargs or {})
        dtype = next((one.dtype for one in tree_leaves(given) if isinstance(one, torch.Tensor)), torch.float64)
        if func.overloadpacket not in PRODUCTS or func._schema.is_mutable or not dtype.is_floating_point:
            return func(*given[0], **given[1])
        narrow, wide = (tree_map_only(torch.Tensor, cast, given) for cast in (torch.Tensor.float, torch.Tensor.double))
        summed, exact = func(*narrow[0], **narrow[1]), func(*wide[0], **wide[1])
        held = exact.to(dtype) == exact
        off = torch.where(held, 0.0, self._size * exact * self._noise(exact))
        if not torch.equal(summed.double(), exact):
            if self._one_sign:
                unsigned = tree_map_only(torch.Tensor, torch.Tensor.abs, wide)
                lost = _OF_TERMS * func(*unsigned[0], **unsigned[1])
            else:
                lost = _OF_SUMS * exact.square().mean(tuple(range(1, exact.ndim)), keepdim=True).sqrt()
            off += lost.nan_to_num(posinf=0.0) * self._noise(exact)
        self.moved = self.moved or bool((off != 0).any())
        return (exact + off).to(dtype)

    def _noise(self, like: torch.Tensor) -> torch.Tensor:
        return 2 * torch.rand(like.shape, generator=self._random, dtype=like.dtype, device=like.device) - 1


class InfinitiesSubtracted(TorchDispatchMode):
    """While it is entered, infinite log-sum-exps are NaN, as where a kernel subtracts the maximum from itself."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket is not _ATEN.logsumexp or not isinstance(result, torch.Tensor):
            return result
        return torch.where(result.isinf(), torch.nan, result)


class Float32Arithmetic(TorchDispatchMode):
    """While it is entered, results of arithmetic are off at random, as far as those of a kernel in float32 may be.

    What float32 holds exactly stays as it is: every kernel has the same. Of quotients that is so by powers of two
    alone: by others a kernel may multiply with a reciprocal. What vanishes is any number below float32's. Products may
    be stored in `storage` before more is done with them. Another `seed` gives other errors, and the other `side`, 1 or
    -1, those with the other sign: of two neighbours that a result lies between, both are found so.

    Attributes:
        moved: whether anything was.
    """

    def __init__(self, storage: torch.dtype, device: torch.device, seed: int, side: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        eps = torch.finfo(torch.float32).eps
        self._size = side * _UNITS * eps
        self._size_of_products = side * max(_UNITS_OF_PRODUCTS * eps, torch.finfo(storage).eps)
        self._random = torch.Generator(device).manual_seed(seed)
        self.moved = False

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        given = (args, kwargs or {})
        result = func(*given[0], **given[1])
        if func.overloadpacket not in ARITHMETIC or func._schema.is_mutable or given[1].get("rounding_mode"):
            return result
        wide = tree_map_only(torch.Tensor, lambda one: one.double() if one.dtype is torch.float32 else one, given)
        narrow = any(isinstance(one, torch.Tensor) and one.dtype is torch.float32 for one in tree_leaves(given))
        exact = func(*wide[0], **wide[1]) if narrow else result
        if func.overloadpacket in _VANISHING:
            exact = self._not_vanished(exact, wide[0][0])
        size = self._size_of_products if func.overloadpacket in PRODUCTS else self._size
        cancels = func.overloadpacket in _CANCELLING
        by = wide[0][1] if func.overloadpacket is _ATEN.div else 1.0
        return tree_map(lambda one, exact: self._off(one, exact, by, size, cancels=cancels), result, exact)

    def _not_vanished(self, values: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        vanished = (values < _LEAST) & (given > -torch.inf)
        return torch.where(vanished, _LEAST * self._noise(values), values)

    def _noise(self, like: torch.Tensor) -> torch.Tensor:
        return torch.rand(like.shape, generator=self._random, dtype=torch.float64, device=like.device)

    def _off(self, result: object, exact: torch.Tensor, by: object, size: float, *, cancels: bool) -> object:
        if not isinstance(result, torch.Tensor) or result.dtype not in (torch.float32, torch.float64):
            return result
        exact, divisor = exact.double(), torch.as_tensor(by, dtype=torch.float64, device=exact.device)
        rounded = (exact.float().double() != exact) | (torch.frexp(divisor).mantissa.abs() != 0.5)
        inexact = exact.isfinite() & (exact != 0) & rounded
        self.moved = self.moved or bool(inexact.any())
        noise = self._noise(exact)
        far = torch.where(noise < 0.5, noise - 1, noise)  # by half of what it may be, or more
        errors = size * exact.abs()
        if cancels and exact.ndim:
            errors += self._size * exact.square().mean(dim=-1, keepdim=True).sqrt().nan_to_num(posinf=0.0)
        return torch.where(inexact, exact + far * errors, exact).to(result.dtype)


def _lacking(error: RuntimeError) -> bool:
    """Whether torch says that it has no such operation for the type, or on the device."""
    return "not implemented" in str(error) or "not supported" in str(error)
