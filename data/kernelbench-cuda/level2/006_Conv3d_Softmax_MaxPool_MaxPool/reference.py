"""Convolution, softmax over its channels, maxima of windows, maxima of windows of those."""

import torch

SIZES = {
    "small": {
        "batch_size": 1,
        "in_channels": 2,
        "depth": 10,
        "height": 10,
        "width": 143,
        "out_channels": 3,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "medium": {
        "batch_size": 64,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
}
TAGS = ("conv", "softmax", "pool")


class Model(torch.nn.Module):
    """max_pool(max_pool(softmax(conv(x)))), softmax over the channels."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.pool = torch.nn.MaxPool3d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        return self.pool(self.pool(torch.softmax(self.conv(x), dim=1)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["pool_size"]]
