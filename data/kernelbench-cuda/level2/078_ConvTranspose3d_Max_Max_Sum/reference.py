"""Transposed convolution, maxima of windows of two sizes, sum over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 1,
        "in_channels": 2,
        "depth": 4,
        "height": 4,
        "width": 103,
        "out_channels": 3,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 2,
        "in_channels": 32,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 5,
        "stride": 2,
        "padding": 2,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 5,
        "stride": 2,
        "padding": 2,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 8,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
TAGS = ("conv_transpose", "pool", "reduction")


class Model(torch.nn.Module):
    """sum over the channels of max_pool(max_pool(conv_transpose(x), 2), 3)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, 1, pooled depth, pooled height, pooled width)."""
        y = torch.nn.functional.max_pool3d(torch.nn.functional.max_pool3d(self.conv_transpose(x), 2), 3)
        return torch.sum(y, dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
