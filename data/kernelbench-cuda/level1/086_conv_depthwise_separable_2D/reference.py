"""Depthwise separable convolution: one filter per channel, then a mix of channels at each position."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 7,
        "out_channels": 9,
        "height": 31,
        "width": 37,
        "kernel_size": 3,
        "padding": 1,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 64,
        "out_channels": 128,
        "height": 512,
        "width": 512,
        "kernel_size": 3,
        "padding": 1,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "out_channels": 128,
        "height": 512,
        "width": 512,
        "kernel_size": 3,
        "padding": 1,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "height": 256,
        "width": 256,
        "kernel_size": 3,
        "padding": 0,
    },
}
TAGS = ("conv", "depthwise")


class Model(torch.nn.Module):
    """A depthwise convolution, then one with 1 x 1 windows; neither has a bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, padding: int) -> None:
        super().__init__()
        self.depthwise = torch.nn.Conv2d(
            in_channels, in_channels, kernel_size, padding=padding, groups=in_channels, bias=False
        )
        self.pointwise = torch.nn.Conv2d(in_channels, out_channels, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, output height, output width)."""
        return self.pointwise(self.depthwise(x))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["padding"]]
