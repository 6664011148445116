"""Product of two symmetric matrices."""

import torch

# The full problem is no larger than 101 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"n": 131},
    "medium": {"n": 4096},
    "full": {"n": 4096},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = A B, where A and B are symmetric; C is not."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(n, n), (n, n) -> (n, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    n = SIZES[size]["n"]
    A, B = torch.rand(n, n), torch.rand(n, n)
    return [(A + A.T) / 2, (B + B.T) / 2]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
