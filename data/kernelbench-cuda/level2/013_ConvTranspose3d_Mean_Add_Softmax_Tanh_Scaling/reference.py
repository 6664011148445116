"""Transposed convolution averaged over its depth, a bias, softmax over the channels, tanh, scaled."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 4,
        "height": 7,
        "width": 37,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 16,
        "depth": 32,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "depth": 32,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 1,
        "padding": 1,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 8,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
SCALARS = {"scaling_factor": 2.0}
TAGS = ("conv_transpose", "reduction", "softmax")
MENDS = (
    "KernelBench's averages over the depth vary by 0.03 and vanish beside the bias; here inputs are normal, of "
    "standard deviation 16."
)


class Model(torch.nn.Module):
    """scaling_factor * tanh(softmax over channels of (mean over depth of conv_transpose(x) + bias))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.bias = torch.nn.Parameter(torch.randn(1, out_channels, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, 1, out height, out width)."""
        y = self.conv_transpose(x).mean(dim=2, keepdim=True) + self.bias
        return torch.tanh(torch.softmax(y, dim=1)) * SCALARS["scaling_factor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [16.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
