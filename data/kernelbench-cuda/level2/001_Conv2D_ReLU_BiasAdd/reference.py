"""Convolution, rectified, with a second bias added after the rectifier."""

import torch

SIZES = {
    "small": {"batch_size": 4, "in_channels": 5, "out_channels": 9, "height": 35, "width": 37, "kernel_size": 3},
    "medium": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "height": 128, "width": 128, "kernel_size": 3},
    "full": {"batch_size": 128, "in_channels": 64, "out_channels": 128, "height": 128, "width": 128, "kernel_size": 3},
    "v0": {"batch_size": 128, "in_channels": 3, "out_channels": 16, "height": 32, "width": 32, "kernel_size": 3},
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """relu(conv(x)) + bias, without padding."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, bias_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        return torch.relu(self.conv(x)) + self.bias


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], (p["out_channels"], 1, 1)]
