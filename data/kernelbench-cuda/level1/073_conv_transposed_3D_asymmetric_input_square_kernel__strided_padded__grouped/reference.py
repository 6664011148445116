"""Strided, padded transposed convolution of volumes with a window as long along each axis."""

import torch

# The full problem takes 589 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 5,
        "depth": 5,
        "height": 7,
        "width": 9,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 32,
        "height": 64,
        "width": 128,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 4,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 32,
        "height": 64,
        "width": 128,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 3,
    },
}
TAGS = ("conv_transpose",)
MENDS = (
    "KernelBench's module takes a number of groups and does not use it: all output channels see all input "
    "channels. So they do here, and there is no such parameter."
)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose3d = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=False
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
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
