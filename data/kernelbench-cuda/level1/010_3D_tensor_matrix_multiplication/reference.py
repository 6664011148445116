"""Product of a batch of matrices with one matrix that all share."""

import torch

# The full problem is no larger than 100 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 3, "m": 41, "k": 107, "n": 91},
    "medium": {"batch_size": 16, "m": 1024, "k": 2048, "n": 768},
    "full": {"batch_size": 16, "m": 1024, "k": 2048, "n": 768},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C[i] = A[i] B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(batch_size, m, k), (k, n) -> (batch_size, m, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["m"], p["k"]), torch.rand(p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
