"""Product of a wide matrix and a vector: a few long dot products."""

import torch

SIZES = {
    "small": {"m": 261, "k": 10007},
    "medium": {"m": 256, "k": 524288},
    "full": {"m": 2048, "k": 1048576},
    "v0": {"m": 256, "k": 131072},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = A B with B a column."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(m, k), (k, 1) -> (m, 1)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Normal values where KernelBench draws from [0, 1): there, outputs are about k / 4 = 262144, beyond fp16.
    Here their standard deviation is sqrt(k) = 1024.
    """
    p = SIZES[size]
    return [torch.randn(p["m"], p["k"]), torch.randn(p["k"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
