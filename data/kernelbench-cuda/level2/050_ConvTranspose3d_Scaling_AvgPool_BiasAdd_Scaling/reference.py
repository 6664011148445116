"""Transposed convolution, a learned scale, means of windows, a bias, another learned scale."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 35,
        "out_channels": 3,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 32,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
TAGS = ("conv_transpose", "pool")
MENDS = (
    "KernelBench's second scale is 1, and its means of standard deviation 0.004 vanish beside the bias; here the "
    "scales are drawn about 0.5 and 1.5, and inputs are normal, of standard deviation 8."
)


class Model(torch.nn.Module):
    """(avg_pool(conv_transpose(x) * scale1) + bias) * scale2."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.scale1 = torch.nn.Parameter(0.5 + 0.05 * torch.randn(()))
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1, 1))
        self.scale2 = torch.nn.Parameter(1.5 + 0.1 * torch.randn(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = torch.nn.functional.avg_pool3d(self.conv_transpose(x) * self.scale1, 2)
        return (y + self.bias) * self.scale2


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
