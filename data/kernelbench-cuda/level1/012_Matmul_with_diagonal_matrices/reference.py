"""Product of a diagonal matrix, given as a vector, and a dense matrix."""

import torch

# The full problem is no larger than 34 MB, so that medium is the same.
SIZES = {
    "small": {"n": 509, "m": 2003},
    "medium": {"n": 4096, "m": 4096},
    "full": {"n": 4096, "m": 4096},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = diag(A) B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(n,), (n, m) -> (n, m)."""
        return A.unsqueeze(1) * B


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["n"]), torch.rand(p["n"], p["m"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
