"""Depthwise convolution of square images."""

import torch

# The full problem takes 1070 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 3, "in_channels": 7, "height": 37, "width": 41, "kernel_size": 3},
    "medium": {"batch_size": 16, "in_channels": 64, "height": 512, "width": 512, "kernel_size": 3},
    "full": {"batch_size": 16, "in_channels": 64, "height": 512, "width": 512, "kernel_size": 3},
    "v0": {"batch_size": 16, "in_channels": 3, "height": 256, "width": 256, "kernel_size": 3},
}
TAGS = ("conv", "depthwise")


class Model(torch.nn.Module):
    """Convolution of each channel with a filter of its own, without padding or bias."""

    def __init__(self, in_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv2d = torch.nn.Conv2d(in_channels, in_channels, kernel_size, groups=in_channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, in_channels, extents of the output)."""
        return self.conv2d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["kernel_size"]]
