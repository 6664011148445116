"""Strided convolution of long signals with a dilated window."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 7,
        "out_channels": 11,
        "length": 1531,
        "kernel_size": 3,
        "stride": 3,
        "dilation": 4,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 64,
        "out_channels": 128,
        "length": 524280,
        "kernel_size": 3,
        "stride": 3,
        "dilation": 4,
    },
    "full": {
        "batch_size": 64,
        "in_channels": 64,
        "out_channels": 128,
        "length": 524280,
        "kernel_size": 3,
        "stride": 3,
        "dilation": 4,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "length": 256,
        "kernel_size": 3,
        "stride": 3,
        "dilation": 4,
    },
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution without padding or bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, dilation: int) -> None:
        super().__init__()
        self.conv1d = torch.nn.Conv1d(
            in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=False
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, length) -> (batch_size, out_channels, extents of the output)."""
        return self.conv1d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["length"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["dilation"]]
