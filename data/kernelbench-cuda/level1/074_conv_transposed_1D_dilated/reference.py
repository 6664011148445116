"""Transposed convolution of long signals with a dilated window."""

import torch

# The full problem takes 805 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 3, "in_channels": 5, "out_channels": 7, "length": 389, "kernel_size": 5, "dilation": 3},
    "medium": {
        "batch_size": 32,
        "in_channels": 32,
        "out_channels": 64,
        "length": 131072,
        "kernel_size": 5,
        "dilation": 3,
    },
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "out_channels": 64,
        "length": 131072,
        "kernel_size": 5,
        "dilation": 3,
    },
    "v0": {"batch_size": 16, "in_channels": 3, "out_channels": 64, "length": 256, "kernel_size": 5, "dilation": 3},
}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, dilation: int) -> None:
        super().__init__()
        self.conv1d_transpose = torch.nn.ConvTranspose1d(
            in_channels, out_channels, kernel_size, dilation=dilation, bias=False
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
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["dilation"]]
