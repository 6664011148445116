"""Convolution, minimum over its depth, softmax over its channels."""

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
        "in_channels": 3,
        "depth": 24,
        "height": 32,
        "width": 32,
        "out_channels": 24,
        "kernel_size": 3,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 24,
        "height": 32,
        "width": 32,
        "out_channels": 24,
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
TAGS = ("conv", "reduction", "softmax")
MENDS = (
    "KernelBench's inputs from [0, 1) give 24 nearly equal probabilities; here inputs are normal, of standard "
    "deviation 4."
)


class Model(torch.nn.Module):
    """softmax over the channels of the minimum over the depth of conv(x)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels, out height, out width)."""
        return torch.softmax(torch.amin(self.conv(x), dim=2), dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
