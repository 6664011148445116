"""Transposed convolution, softmax over its channels, a bias, scaled, sigmoid."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "height": 7,
        "width": 18,
        "out_channels": 7,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 64,
        "height": 64,
        "width": 64,
        "out_channels": 128,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 64,
        "height": 64,
        "width": 64,
        "out_channels": 128,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 32,
        "height": 16,
        "width": 16,
        "out_channels": 64,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
}
SCALARS = {"scaling_factor": 2.0}
TAGS = ("conv_transpose", "softmax")
MENDS = (
    "KernelBench's softmax over 128 small values is about 1 / 128 everywhere and vanishes beside the bias; here "
    "inputs are normal, of standard deviation 16."
)


class Model(torch.nn.Module):
    """sigmoid(scaling_factor * (softmax(conv_transpose(x)) + bias))."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, output_padding: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        y = torch.softmax(self.conv_transpose(x), dim=1) + self.bias
        return torch.sigmoid(y * SCALARS["scaling_factor"])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [16.0 * torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
