"""Strided, padded transposed convolution of long signals with a dilated window."""

import torch

# The full problem takes 671 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 5,
        "out_channels": 7,
        "length": 389,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "length": 131072,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 2,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "length": 131072,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 2,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "length": 128,
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
        self.conv1d_transpose = torch.nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, length) -> (batch_size, out_channels, extents of the output)."""
        return self.conv1d_transpose(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["length"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
