"""Product of two square matrices."""

import torch

SIZES = {
    "small": {"n": 193},
    "medium": {"n": 3072},
    "full": {"n": 4096},
    "v0": {"n": 2048},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C = A B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(n, n), (n, n) -> (n, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Outputs are about n / 4, far below fp16's largest value."""
    n = SIZES[size]["n"]
    return [torch.rand(n, n), torch.rand(n, n)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
