"""Linear layer, rectified and divided by a constant."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"divisor": 2.0}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """relu(x W^T + b) / divisor."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.relu(self.linear(x)) / SCALARS["divisor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
