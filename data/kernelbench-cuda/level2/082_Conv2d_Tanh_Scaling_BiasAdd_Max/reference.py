"""Convolution through tanh, scaled, a bias added, maxima of windows."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 4,
        "height": 15,
        "width": 137,
        "out_channels": 7,
        "kernel_size": 3,
        "pool_size": 4,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 8,
        "height": 256,
        "width": 256,
        "out_channels": 64,
        "kernel_size": 3,
        "pool_size": 4,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "height": 256,
        "width": 256,
        "out_channels": 64,
        "kernel_size": 3,
        "pool_size": 4,
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
SCALARS = {"scaling_factor": 2.0}
TAGS = ("conv", "pool")


class Model(torch.nn.Module):
    """max_pool(scaling_factor * tanh(conv(x)) + bias)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1))
        self.max_pool = torch.nn.MaxPool2d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        return self.max_pool(torch.tanh(self.conv(x)) * SCALARS["scaling_factor"] + self.bias)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["pool_size"]]
