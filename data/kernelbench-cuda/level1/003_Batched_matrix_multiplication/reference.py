"""A batch of matrix products."""

import torch

SIZES = {
    "small": {"batch_size": 5, "m": 37, "k": 67, "n": 53},
    "medium": {"batch_size": 32, "m": 512, "k": 1024, "n": 2048},
    "full": {"batch_size": 128, "m": 512, "k": 1024, "n": 2048},
    "v0": {"batch_size": 128, "m": 128, "k": 256, "n": 512},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C[i] = A[i] B[i]."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(batch_size, m, k), (batch_size, k, n) -> (batch_size, m, n)."""
        return torch.bmm(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["m"], p["k"]), torch.rand(p["batch_size"], p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
