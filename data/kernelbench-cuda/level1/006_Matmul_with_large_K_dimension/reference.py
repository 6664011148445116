"""Product of a wide and a tall matrix: few outputs, each a very long sum."""

import torch

SIZES = {
    "small": {"m": 37, "k": 1021, "n": 43},
    "medium": {"m": 256, "k": 131072, "n": 256},
    "full": {"m": 256, "k": 524288, "n": 256},
    "v0": {"m": 256, "k": 131072, "n": 256},
}
TAGS = ("matmul",)
MENDS = "KernelBench draws from [0, 1): sums of 524288 products are about 131072, beyond fp16. Here inputs are normal."


class Model(torch.nn.Module):
    """C = A B."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(m, k), (k, n) -> (m, n)."""
        return torch.matmul(A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Outputs are about sqrt(k) = 724 large."""
    p = SIZES[size]
    return [torch.randn(p["m"], p["k"]), torch.randn(p["k"], p["n"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
