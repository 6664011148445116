"""Transposed convolution of images with a large stride and a dilated window."""

import torch

# The full problem takes 424 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 5,
        "out_channels": 7,
        "height": 7,
        "width": 9,
        "kernel_size": 3,
        "stride": 5,
        "padding": 1,
        "dilation": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "height": 64,
        "width": 128,
        "kernel_size": 3,
        "stride": 5,
        "padding": 1,
        "dilation": 2,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "height": 64,
        "width": 128,
        "kernel_size": 3,
        "stride": 5,
        "padding": 1,
        "dilation": 2,
    },
}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__()
        self.conv_transpose2d = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=False
        )

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
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
