"""Product of a tall and a wide matrix: short sums, a very large output."""

import torch

SIZES = {
    "small": {"m": 261, "k": 41, "n": 141},
    "medium": {"m": 16384, "k": 64, "n": 16384},
    "full": {"m": 32768, "k": 64, "n": 32768},
    "v0": {"m": 16384, "k": 32, "n": 16384},
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
