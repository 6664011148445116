"""Strided, padded transposed convolution of volumes with a dilated window."""

import torch

# The full problem takes 302 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 5,
        "depth": 5,
        "height": 6,
        "width": 7,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 2,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "kernel_size": 3,
        "stride": 2,
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
        self.conv_transpose3d = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=False
        )

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
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
