"""Transposed convolution, a second bias, clamped, scaled, clamped and scaled back."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 5,
        "height": 7,
        "width": 18,
        "out_channels": 7,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 64,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 64,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
}
SCALARS = {"scaling_factor": 2.0}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """clamp(clamp(conv_transpose(x) + bias, 0, 1) * scaling_factor, 0, 1) / scaling_factor."""

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
        y = torch.clamp(self.conv_transpose(x) + self.bias, 0.0, 1.0) * SCALARS["scaling_factor"]
        return torch.clamp(y, 0.0, 1.0) / SCALARS["scaling_factor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
