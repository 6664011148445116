"""Linear layer, multiplied by a constant, through a leaky rectifier."""

import torch

SIZES = {
    "small": {"batch_size": 67, "in_features": 257, "out_features": 331},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"multiplier": 2.0, "negative_slope": 0.1}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """leaky_relu(multiplier * (x W^T + b))."""

    def __init__(self, in_features: int, out_features: int, multiplier: float, negative_slope: float) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.multiplier = multiplier
        self.negative_slope = negative_slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.nn.functional.leaky_relu(self.gemm(x) * self.multiplier, self.negative_slope)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], SCALARS["multiplier"], SCALARS["negative_slope"]]
