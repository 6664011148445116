"""Convolution with 1 x 1 windows: a mix of channels at each position."""

import torch

SIZES = {
    "small": {"batch_size": 2, "in_channels": 37, "out_channels": 23, "height": 17, "width": 19},
    "medium": {"batch_size": 2, "in_channels": 64, "out_channels": 128, "height": 1024, "width": 1024},
    "full": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 1024, "width": 1024},
    "v0": {"batch_size": 16, "in_channels": 3, "out_channels": 64, "height": 256, "width": 256},
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution with 1 x 1 windows, without bias."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv1d = torch.nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height, width)."""
        return self.conv1d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"]]
