"""Operator families: the small vocabulary over which experience generalises from one problem to another.

A family is declared by the problem's reference (`OP_FAMILY = "softmax"`) or read off the calls in its source. A
problem's number or name says nothing about its family here.
"""

from __future__ import annotations

from enum import StrEnum


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
