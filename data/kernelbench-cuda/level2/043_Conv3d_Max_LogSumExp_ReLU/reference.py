"""Convolution, maxima of windows, log-sum-exp over the channels, rectified."""

import math

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 4,
        "height": 6,
        "width": 78,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "medium": {
        "batch_size": 2,
        "in_channels": 32,
        "depth": 32,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "full": {
        "batch_size": 4,
        "in_channels": 32,
        "depth": 32,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
}
TAGS = ("conv", "pool", "softmax")
MENDS = (
    "KernelBench's log-sum-exp lies about 4.4 everywhere, where the rectifier does nothing; here inputs are "
    "normal, of standard deviation 4, and biases are drawn about -4 - log(out_channels)."
)


class Model(torch.nn.Module):
    """relu(logsumexp(max_pool(conv(x)))) over the channels."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size, stride, padding)
        torch.nn.init.normal_(self.conv.bias, mean=-4.0 - math.log(out_channels), std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, 1, pooled depth, pooled height, pooled width)."""
        y = torch.nn.functional.max_pool3d(self.conv(x), 2)
        return torch.relu(torch.logsumexp(y, dim=1, keepdim=True))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
