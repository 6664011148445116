"""Convolution through four activations, a bias."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 6,
        "height": 7,
        "width": 35,
        "out_channels": 5,
        "kernel_size": 3,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 8,
        "depth": 32,
        "height": 64,
        "width": 64,
        "out_channels": 32,
        "kernel_size": 3,
    },
    "full": {
        "batch_size": 64,
        "in_channels": 8,
        "depth": 32,
        "height": 64,
        "width": 64,
        "out_channels": 32,
        "kernel_size": 3,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
    },
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """sigmoid(gelu(leaky_relu(relu(conv(x))))) + bias; after the rectifier the leaky one changes nothing."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = torch.nn.functional.leaky_relu(torch.relu(self.conv(x)), 0.01)
        return torch.sigmoid(torch.nn.functional.gelu(y)) + self.bias


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
