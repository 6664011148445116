"""Product of two lower triangular matrices."""

import torch

# The full problem is no larger than 101 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"n": 131},
    "medium": {"n": 4096},
    "full": {"n": 4096},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """The lower triangle of A B; the other one is zero, as it is in A and B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(n, n), (n, n) -> (n, n), both lower triangular."""
        return torch.tril(torch.matmul(A, B))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    n = SIZES[size]["n"]
    return [torch.tril(torch.rand(n, n)), torch.tril(torch.rand(n, n))]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
