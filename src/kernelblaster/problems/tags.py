"""Tags of problems, and the fixed split of a data set into problems to learn from and problems to judge learning by.

A reference declares what it is made of, the main operation first: `TAGS = ("conv", "norm")`. The split goes by
operation, never by number or chance: whoever has learned on `TRAIN` has seen no problem with a held-out operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Tag(StrEnum):
    """An operation that a problem holds."""

    MATMUL = "matmul"
    """Matrix-matrix and matrix-vector products, linear layers included."""
    CONV = "conv"
    CONV_TRANSPOSE = "conv_transpose"
    DEPTHWISE = "depthwise"
    """A convolution, transposed or not, in which each channel has filters of its own; stands beside `conv`."""
    POOL = "pool"
    NORM = "norm"
    SOFTMAX = "softmax"
    """Softmax, log-softmax and log-sum-exp."""
    REDUCTION = "reduction"
    SCAN = "scan"
    ELEMENTWISE = "elementwise"
    LOSS = "loss"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    """Recurrent layers and state-space models."""
    STENCIL = "stencil"
    """Each output from its neighbourhood: image filters, steps of a grid."""
    SPARSE = "sparse"
    FFT = "fft"
    SORT = "sort"
    """Sorting, compaction, order statistics."""
    GATHER = "gather"
    """Reads or writes at addresses that the data gives: lookups, scatters, sampling along a flow."""
    HISTOGRAM = "histogram"
    PAIRWISE = "pairwise"
    """All of one set with all of another: bodies, rays and spheres, blocks and displacements."""
    TRAVERSAL = "traversal"
    """A walk through a tree."""
    QUANTIZED = "quantized"
    """Codes of few bits with scales."""
    EXPERTS = "experts"
    """Products whose weights each token chooses."""
    CRYPTO = "crypto"
    """Hashes, ciphers and long integers."""
    NETWORK = "network"
    """A whole network, or a block of one: a chain of many layers."""


class Split(StrEnum):
    """The part of a data set that a problem belongs to."""

    TRAIN = "train"
    HELD_OUT = "heldout"


HELD_OUT: frozenset[Tag] = frozenset(
    {
        Tag.CONV_TRANSPOSE,
        Tag.ATTENTION,
        Tag.RECURRENT,
        Tag.SCAN,
        Tag.LOSS,
        Tag.FFT,
        Tag.SPARSE,
        Tag.HISTOGRAM,
        Tag.TRAVERSAL,
    },
)
"""Operations that no problem of `Split.TRAIN` holds. Changing this makes earlier studies incomparable."""


def split_of(tags: Iterable[Tag]) -> Split | None:
    """The part that a problem with these tags belongs to; None without tags."""
    found = frozenset(tags)
    if not found:
        return None
    return Split.HELD_OUT if found & HELD_OUT else Split.TRAIN
