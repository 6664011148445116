"""Convolution divided by a constant, maxima of windows, their average, a bias, sum over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 101,
        "in_channels": 2,
        "depth": 5,
        "height": 5,
        "width": 7,
        "out_channels": 3,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 8,
        "depth": 16,
        "height": 64,
        "width": 64,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "depth": 16,
        "height": 64,
        "width": 64,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
}
SCALARS = {"divisor": 2.0}
TAGS = ("conv", "pool", "reduction")
MENDS = (
    "KernelBench's averages over 6,727 windows are the same for all samples; here each sample has a scale of its own."
)


class Model(torch.nn.Module):
    """sum over channels of (mean of max_pool(conv(x) / divisor) + bias)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1, 1))
        self.max_pool = torch.nn.MaxPool3d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, 1, 1, 1)."""
        y = self.max_pool(self.conv(x) / SCALARS["divisor"]).mean(dim=(2, 3, 4), keepdim=True)
        return torch.sum(y + self.bias, dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        4.0
        * torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, 1, 1)
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["pool_size"]]
