"""Convolution, a factor per channel, leaky rectifier, GELU."""

import torch

SIZES = {
    "small": {"batch_size": 3, "in_channels": 5, "height": 19, "width": 37, "out_channels": 11, "kernel_size": 3},
    "medium": {"batch_size": 16, "in_channels": 64, "height": 256, "width": 256, "out_channels": 64, "kernel_size": 3},
    "full": {"batch_size": 64, "in_channels": 64, "height": 256, "width": 256, "out_channels": 64, "kernel_size": 3},
    "v0": {"batch_size": 128, "in_channels": 3, "height": 32, "width": 32, "out_channels": 16, "kernel_size": 3},
}
SCALARS = {"negative_slope": 0.01}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """gelu(leaky_relu(conv(x) * multiplier))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.multiplier = torch.nn.Parameter(torch.randn(out_channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        y = torch.nn.functional.leaky_relu(self.conv(x) * self.multiplier, SCALARS["negative_slope"])
        return torch.nn.functional.gelu(y)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
