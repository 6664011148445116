"""Instance normalisation of images."""

import torch

SIZES = {
    "small": {"batch_size": 5, "features": 7, "dim1": 41, "dim2": 43},
    "medium": {"batch_size": 8, "features": 64, "dim1": 512, "dim2": 512},
    "full": {"batch_size": 112, "features": 64, "dim1": 512, "dim2": 512},
    "v0": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
}
SCALARS = {"eps": 1e-5}
TAGS = ("norm",)


class Model(torch.nn.Module):
    """Normalises each channel of each sample over its positions; nothing is learned."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.inorm = torch.nn.InstanceNorm2d(num_features, eps=SCALARS["eps"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, features, dim1, dim2) -> the same shape."""
        return self.inorm(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["features"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["features"]]
