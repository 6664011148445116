"""Transposed convolution of wide images with a square window."""

import torch

# The full problem takes 538 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 2, "in_channels": 5, "out_channels": 7, "height": 19, "width": 31, "kernel_size": 3},
    "medium": {"batch_size": 8, "in_channels": 32, "out_channels": 32, "height": 512, "width": 1024, "kernel_size": 3},
    "full": {"batch_size": 8, "in_channels": 32, "out_channels": 32, "height": 512, "width": 1024, "kernel_size": 3},
    "v0": {"batch_size": 16, "in_channels": 32, "out_channels": 64, "height": 128, "width": 256, "kernel_size": 3},
}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv_transpose2d = torch.nn.ConvTranspose2d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv_transpose2d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
