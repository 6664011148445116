"""Convolution of long signals."""

import torch

SIZES = {
    "small": {"batch_size": 3, "in_channels": 7, "out_channels": 11, "length": 523, "kernel_size": 3},
    "medium": {"batch_size": 16, "in_channels": 64, "out_channels": 128, "length": 131072, "kernel_size": 3},
    "full": {"batch_size": 32, "in_channels": 64, "out_channels": 128, "length": 131072, "kernel_size": 3},
    "v0": {"batch_size": 16, "in_channels": 3, "out_channels": 64, "length": 512, "kernel_size": 3},
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution without padding or bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv1d = torch.nn.Conv1d(in_channels, out_channels, kernel_size, bias=False)

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
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
