"""Linear layer of many rows, with a scaled copy of its result added."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 4096, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 16384, "in_features": 4096, "out_features": 4096},
    "v0": {"batch_size": 128, "in_features": 64, "out_features": 128},
}
SCALARS = {"scaling_factor": 0.5}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """scaling_factor * y + y with y = x W^T + b."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        y = self.matmul(x)
        return y * SCALARS["scaling_factor"] + y


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
