"""Product of two rectangular matrices."""

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
    """C = A B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(m, k), (k, n) -> (m, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Outputs are about k / 4 = 2048."""
    p = SIZES[size]
    return [torch.rand(p["m"], p["k"]), torch.rand(p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
