"""Depthwise convolution of wide images with a wide window."""

import torch

# The full problem takes 526 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 3, "in_channels": 7, "height": 29, "width": 53, "kernel_h": 3, "kernel_w": 5},
    "medium": {"batch_size": 32, "in_channels": 128, "height": 128, "width": 256, "kernel_h": 3, "kernel_w": 7},
    "full": {"batch_size": 32, "in_channels": 128, "height": 128, "width": 256, "kernel_h": 3, "kernel_w": 7},
    "v0": {"batch_size": 16, "in_channels": 3, "height": 128, "width": 256, "kernel_h": 3, "kernel_w": 5},
}
TAGS = ("conv", "depthwise")


class Model(torch.nn.Module):
    """Convolution of each channel with a filter of its own, without padding or bias."""

    def __init__(self, in_channels: int, kernel_size: tuple[int, ...]) -> None:
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
    return [p["in_channels"], (p["kernel_h"], p["kernel_w"])]
