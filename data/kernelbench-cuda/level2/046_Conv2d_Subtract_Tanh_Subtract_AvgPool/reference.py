"""Convolution minus a constant, tanh, minus another, means of windows."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 5,
        "height": 13,
        "width": 77,
        "out_channels": 11,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 64,
        "height": 128,
        "width": 128,
        "out_channels": 128,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 64,
        "height": 128,
        "width": 128,
        "out_channels": 128,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
}
SCALARS = {"before": 0.5, "after": 0.2}
TAGS = ("conv", "pool")


class Model(torch.nn.Module):
    """avg_pool(tanh(conv(x) - before) - after)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.avgpool = torch.nn.AvgPool2d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        return self.avgpool(torch.tanh(self.conv(x) - SCALARS["before"]) - SCALARS["after"])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["pool_size"]]
