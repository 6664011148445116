"""Convolution, a bias and a scale per channel, sigmoid, group norm."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 5,
        "height": 19,
        "width": 37,
        "out_channels": 12,
        "kernel_size": 3,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 8,
        "height": 256,
        "width": 256,
        "out_channels": 32,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "height": 256,
        "width": 256,
        "out_channels": 32,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "num_groups": 8,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv", "norm")


class Model(torch.nn.Module):
    """group_norm(sigmoid((conv(x) + bias) * scale))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1))
        self.scale = torch.nn.Parameter(torch.randn(out_channels, 1, 1))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        y = torch.sigmoid((self.conv(x) + self.bias) * self.scale)
        return self.group_norm(y)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
