"""Product of a transposed matrix and a matrix."""

import torch

# The full problem is no larger than 118 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"m": 67, "k": 197, "n": 133},
    "medium": {"m": 2048, "k": 8192, "n": 4096},
    "full": {"m": 2048, "k": 8192, "n": 4096},
    "v0": {"m": 1024, "k": 4096, "n": 2048},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = A^T B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(k, m), (k, n) -> (m, n)."""
        return torch.matmul(A.T, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["k"], p["m"]), torch.rand(p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
