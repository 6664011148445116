"""Batch normalisation of images with the statistics of the batch."""

import torch

SIZES = {
    "small": {"batch_size": 5, "features": 11, "dim1": 31, "dim2": 37},
    "medium": {"batch_size": 7, "features": 64, "dim1": 512, "dim2": 512},
    "full": {"batch_size": 64, "features": 64, "dim1": 512, "dim2": 512},
    "v0": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
}
SCALARS = {"eps": 1e-5}
TAGS = ("norm",)


class Model(torch.nn.Module):
    """Normalises each channel over samples and positions, as in training.

    Scale and shift start apart from KernelBench's ones and zeros, which a kernel could ignore.
    """

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(num_features, eps=SCALARS["eps"], track_running_stats=False)
        torch.nn.init.normal_(self.bn.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.bn.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, features, dim1, dim2) -> the same shape."""
        return self.bn(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["features"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["features"]]
