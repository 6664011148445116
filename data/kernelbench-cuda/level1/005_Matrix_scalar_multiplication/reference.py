"""A large matrix times a number."""

import torch

SIZES = {
    "small": {"m": 131, "n": 1009},
    "medium": {"m": 8192, "n": 16384},
    "full": {"m": 65536, "n": 16384},
    "v0": {"m": 16384, "n": 4096},
}
SCALARS = {"s": 3.14}
TAGS = ("elementwise",)


class Model(torch.nn.Module):
    """C = s A."""

    def forward(self, A: torch.Tensor, s: float) -> torch.Tensor:
        """(m, n) and a number -> (m, n)."""
        return A * s


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["m"], p["n"]), SCALARS["s"]]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
