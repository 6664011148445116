"""Product with a wide matrix, halved, summed over its columns and scaled."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "hidden": 101},
    "medium": {"batch_size": 1024, "in_features": 4096, "hidden": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "hidden": 8192},
    "v0": {"batch_size": 128, "in_features": 10, "hidden": 20},
}
SCALARS = {"scaling_factor": 1.5}
TAGS = ("matmul", "reduction")


class Model(torch.nn.Module):
    """scaling_factor * sum(x W^T / 2) over the columns."""

    def __init__(self, in_features: int, hidden: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(hidden, in_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        return SCALARS["scaling_factor"] * torch.sum(x @ self.weight.T / 2, dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["hidden"]]
