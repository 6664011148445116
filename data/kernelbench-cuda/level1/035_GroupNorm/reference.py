"""Group normalisation of images."""

import torch

SIZES = {
    "small": {"batch_size": 3, "features": 14, "num_groups": 7, "dim1": 37, "dim2": 41},
    "medium": {"batch_size": 8, "features": 64, "num_groups": 8, "dim1": 512, "dim2": 512},
    "full": {"batch_size": 112, "features": 64, "num_groups": 8, "dim1": 512, "dim2": 512},
    "v0": {"batch_size": 16, "features": 64, "num_groups": 8, "dim1": 256, "dim2": 256},
}
SCALARS = {"eps": 1e-5}
TAGS = ("norm",)


class Model(torch.nn.Module):
    """Normalises groups of channels of each sample, with a learned scale and shift per channel.

    Both start apart from KernelBench's ones and zeros, which a kernel could ignore.
    """

    def __init__(self, num_features: int, num_groups: int) -> None:
        super().__init__()
        self.gn = torch.nn.GroupNorm(num_groups, num_features, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.gn.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.gn.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, features, dim1, dim2) -> the same shape."""
        return self.gn(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["features"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["features"], p["num_groups"]]
