"""Transposed convolution, log-sum-exp over its channels, a kind of swish, a learned value subtracted, clamped."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 19,
        "out_channels": 5,
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
TAGS = ("conv_transpose", "softmax")
MENDS = (
    "KernelBench's log-sum-exp lies within a few per cent of 2.8, so that outputs are nearly one value, which the "
    "bias sets; here inputs are normal, of standard deviation 32, and the bias has a standard deviation of 0.2."
)


class Model(torch.nn.Module):
    """clamp(z * sigmoid(z + 3) / 6 - bias, -1, 1) with z = logsumexp over the channels of conv_transpose(x)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride, padding)
        self.bias = torch.nn.Parameter(0.2 * torch.randn(1, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, 1, out depth, out height, out width)."""
        z = torch.logsumexp(self.conv_transpose(x), dim=1, keepdim=True)
        return torch.clamp(z * torch.sigmoid(z + 3.0) / 6.0 - self.bias, -1.0, 1.0)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [32.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
