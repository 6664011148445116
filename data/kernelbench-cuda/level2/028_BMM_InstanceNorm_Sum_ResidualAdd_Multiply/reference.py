"""Linear layer, each row normalised over its features, then a second input added and multiplied."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 64, "out_features": 128},
}
SCALARS = {"eps": 1e-5}
TAGS = ("matmul", "norm")


class Model(torch.nn.Module):
    """(z + y) * y, with z the instance norm of x W^T + b as an image of one channel and one row."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.bmm = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features), (batch_size, out_features) -> (batch_size, out_features)."""
        z = self.bmm(x)[:, None, None, :]
        z = torch.nn.functional.instance_norm(z, eps=SCALARS["eps"])[:, 0, 0, :]
        return (z + y) * y


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"]), torch.rand(p["batch_size"], p["out_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
