"""How long the sums of an operation are, and what roundings of one sign cost them in fp32.

A serial sum of k random terms loses about sqrt(k) roundings. Of terms that are equal each addition rounds to the same
side while the sum stays within one power of two: k equal terms lose up to k * 2^-25.5 of their sum, and up to
k * 2^-24 where a few larger ones came first. Samples of a mixture have such terms: where most values are zero, or tiny
beside the rest, all squared distances from the mean but a few are one number. A normalisation over four million
elements by 256 threads then has a scale that is off by up to 2^-11, and every honest kernel another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LANES, LANES_OF_ONE = 256.0, 65_536.0
"""Threads that share a sum in the plainest kernel worth its time: a block, and the GPU where there is one sum."""
_MOST = 2.0**-11
_LOSS_OF_TERM = 2.0**-24
_SAMPLES, _ELEMENTS = 256, 1 << 14
"""Samples, and elements of each, that are looked at: neighbours are alike (`leading.mix`)."""
_ALIKE = 2.0**-8
"""Of the spread: values that differ by less have squares which a long sum can hardly tell apart."""
_NEGLIGIBLE = 2.0**-17
"""A quarter of what fp32 arithmetic may lose anyhow."""
_ATEN = torch.ops.aten
_ALONG = frozenset({_ATEN._softmax, _ATEN._log_softmax})
_SUMS = frozenset(
    {
        _ATEN.sum,
        _ATEN.mean,
        _ATEN.var,
        _ATEN.std,
        _ATEN.var_mean,
        _ATEN.std_mean,
        _ATEN.norm,
        _ATEN.linalg_vector_norm,
        _ATEN.logsumexp,
        _ATEN.mse_loss,
        _ATEN.smooth_l1_loss,
        _ATEN.huber_loss,
    }
)
_NORMALISATIONS = frozenset(
    {
        _ATEN.native_layer_norm,
        _ATEN.native_group_norm,
        _ATEN.native_batch_norm,
        _ATEN._native_batch_norm_legit,
        _ATEN.cudnn_batch_norm,
        _ATEN.miopen_batch_norm,
    }
)
"""Their second result has an element per sum."""


class LongestSum(TorchDispatchMode):
    """While it is entered, notes how long sums are. Products are not looked at: their terms are hardly ever equal.

    Attributes:
        terms: of the longest sum; 1 where there is none.
        serial: most terms that one thread of a plain kernel adds; 0 where there is no sum.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.terms, self.serial = 1, 0.0

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        returned = func(*args, **(kwargs or {}))
        for terms, sums in _lengths(func, args, returned):
            self.terms = max(self.terms, terms)
            self.serial = max(self.serial, terms / (LANES if sums > 1 else LANES_OF_ONE))
        return returned


def _lengths(func: torch._ops.OpOverload, args: tuple[object, ...], returned: object) -> Iterator[tuple[int, int]]:
    """Terms of each sum of an operation, and how many sums there are; nothing of an operation that has none."""
    operation, given = func.overloadpacket, args[0] if args else None
    if not isinstance(given, torch.Tensor) or not given.numel():
        return
    if operation in _ALONG and given.ndim and isinstance(args[1], int):
        extent = given.shape[args[1]]
        yield extent, given.numel() // extent
        return
    if operation in _SUMS or operation in _NORMALISATIONS:
        results = [one for one in tree_leaves(returned) if isinstance(one, torch.Tensor)]
        result = results[operation in _NORMALISATIONS]
        if 0 < result.numel() < given.numel():
            yield given.numel() // result.numel(), result.numel()


def drifts(values: torch.Tensor, serial: float) -> torch.Tensor:
    """What roundings of one sign may cost sums over samples, as a share of them; float32, one per index of axis 0.

    Values that many elements of a sample share round alike, different ones by chance: p being the shares of elements,
    the roundings add up to sqrt(sum of p^2) of what they would if all were equal.

    Args:
        values: samples first.
        serial: terms that one thread adds.
    """
    most = min(serial * _LOSS_OF_TERM, _MOST)
    rows = values.reshape(values.shape[0], -1)
    found = torch.zeros(rows.shape[0])
    if most <= _NEGLIGIBLE:
        return found
    step = max(rows.shape[0] // _SAMPLES, 1)
    for first in range(0, rows.shape[0], step):
        finite = rows[first][rows[first].isfinite()].float()
        spread = float(finite.std(correction=0)) if finite.numel() else 0.0
        if spread > 0:
            some = finite[:: max(finite.numel() // _ELEMENTS, 1) | 1]
            _, counts = torch.unique(torch.floor(some / (_ALIKE * spread)), return_counts=True)
            found[first : first + step] = most * float((counts / some.numel()).square().sum().sqrt())
    return found
