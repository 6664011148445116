"""Product of two matrices whose extents no tile divides."""

import torch

# The full problem is no larger than 180 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"m": 113, "k": 73, "n": 149},
    "medium": {"m": 8205, "k": 2949, "n": 5921},
    "full": {"m": 8205, "k": 2949, "n": 5921},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = A B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(m, k), (k, n) -> (m, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["m"], p["k"]), torch.rand(p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
