"""The modes that PyTorch is timed in; a module of its own, so that the command line need not load how it is done."""

from enum import StrEnum


class TorchMode(StrEnum):
    """How PyTorch executes the reference module."""

    EAGER = "eager"
    COMPILE = "compile"
    """torch.compile with its default mode."""
    MAX_AUTOTUNE = "max-autotune-no-cudagraphs"
    """torch.compile, which tries kernels and keeps the fastest."""
    REDUCE_OVERHEAD = "reduce-overhead"
    """torch.compile, whose kernels are launched as CUDA graphs."""
