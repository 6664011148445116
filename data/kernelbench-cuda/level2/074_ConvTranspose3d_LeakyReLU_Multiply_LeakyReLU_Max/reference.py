"""Transposed convolution through a leaky rectifier, a factor per channel, the rectifier again, maxima of windows."""

import torch

# The full problem fits 16 GB, so that medium is the same.
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
        "output_padding": 1,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
}
SCALARS = {"negative_slope": 0.2}
TAGS = ("conv_transpose", "pool")


class Model(torch.nn.Module):
    """max_pool(leaky_relu(leaky_relu(conv_transpose(x)) * multiplier))."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, output_padding: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.multiplier = torch.nn.Parameter(torch.randn(out_channels, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = torch.nn.functional.leaky_relu(self.conv_transpose(x), SCALARS["negative_slope"]) * self.multiplier
        return torch.nn.functional.max_pool3d(torch.nn.functional.leaky_relu(y, SCALARS["negative_slope"]), 2)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
