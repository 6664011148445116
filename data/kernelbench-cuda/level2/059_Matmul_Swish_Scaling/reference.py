"""Linear layer with a small batch and a huge weight, through swish, scaled."""

import torch

SIZES = {
    "small": {"batch_size": 35, "in_features": 389, "out_features": 431},
    "medium": {"batch_size": 128, "in_features": 8192, "out_features": 8192},
    "full": {"batch_size": 128, "in_features": 32768, "out_features": 32768},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"scaling_factor": 2.0}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """scaling_factor * y * sigmoid(y) with y = x W^T + b."""

    def __init__(self, in_features: int, out_features: int, scaling_factor: float) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.scaling_factor = scaling_factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        y = self.matmul(x)
        return y * torch.sigmoid(y) * self.scaling_factor


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], SCALARS["scaling_factor"]]
