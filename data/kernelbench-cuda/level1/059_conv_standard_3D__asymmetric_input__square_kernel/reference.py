"""Convolution of flat volumes with a window of depth and height alone."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 7,
        "depth": 11,
        "height": 13,
        "width": 9,
        "kernel_size": 3,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 256,
        "height": 256,
        "width": 10,
        "kernel_size": 3,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 256,
        "height": 256,
        "width": 10,
        "kernel_size": 3,
    },
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution without padding or bias; the window has extent 1 along the last axis."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv3d = torch.nn.Conv3d(in_channels, out_channels, (kernel_size, kernel_size, 1), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv3d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
