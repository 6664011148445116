"""Root-mean-square normalisation over the channels of an image batch."""

import torch

SIZES = {
    "small": {"batch_size": 19, "features": 33, "dim1": 61, "dim2": 67},
    "medium": {"batch_size": 8, "features": 64, "dim1": 512, "dim2": 512},
    "full": {"batch_size": 112, "features": 64, "dim1": 512, "dim2": 512},
    "v0": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
}
SCALARS = {"eps": 1e-5}
TAGS = ("norm",)


class Model(torch.nn.Module):
    """x / sqrt(mean over channels of x^2 + eps), without a learned scale."""

    def __init__(self, features: int, eps: float = SCALARS["eps"]) -> None:
        super().__init__()
        self.features = features
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, features, dim1, dim2) -> the same shape."""
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["features"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["features"]]
