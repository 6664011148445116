"""Convolution, means of windows, sigmoid, sum over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 5,
        "height": 11,
        "width": 135,
        "out_channels": 7,
        "kernel_size": 3,
        "pool_size": 4,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 8,
        "height": 384,
        "width": 384,
        "out_channels": 64,
        "kernel_size": 3,
        "pool_size": 4,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "height": 384,
        "width": 384,
        "out_channels": 64,
        "kernel_size": 3,
        "pool_size": 4,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "pool_size": 2,
    },
}
TAGS = ("conv", "pool", "reduction")
MENDS = (
    "KernelBench sums 577,600 sigmoids of each sample to about 288,800, beyond fp16 and the same for all samples "
    "to 0.01 %; here the sum goes over the channels alone, and inputs are normal, of standard deviation 8."
)


class Model(torch.nn.Module):
    """sum(sigmoid(avg_pool(conv(x)))) over the channels."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, pool_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.avg_pool = torch.nn.AvgPool2d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, pooled height, pooled width)."""
        return torch.sum(torch.sigmoid(self.avg_pool(self.conv(x))), dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["pool_size"]]
