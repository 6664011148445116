"""Transposed convolution of volumes that are as long along each axis."""

import torch

# The full problem takes 422 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 5,
        "depth": 7,
        "height": 9,
        "width": 11,
        "kernel_size": 3,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 48,
        "out_channels": 48,
        "depth": 64,
        "height": 64,
        "width": 64,
        "kernel_size": 3,
    },
    "full": {
        "batch_size": 8,
        "in_channels": 48,
        "out_channels": 48,
        "depth": 64,
        "height": 64,
        "width": 64,
        "kernel_size": 3,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 32,
        "height": 32,
        "width": 32,
        "kernel_size": 3,
    },
}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv_transpose3d = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv_transpose3d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
