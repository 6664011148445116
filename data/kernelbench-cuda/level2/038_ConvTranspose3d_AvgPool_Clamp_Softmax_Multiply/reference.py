"""Averages of windows, transposed convolution, clamp, softmax over all points of a channel, scaled per channel."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 4,
        "height": 6,
        "width": 11,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_kernel_size": 2,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 32,
        "depth": 32,
        "height": 64,
        "width": 64,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_kernel_size": 2,
    },
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "depth": 32,
        "height": 64,
        "width": 64,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_kernel_size": 2,
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
        "output_padding": 1,
        "pool_kernel_size": 2,
    },
}
SCALARS = {"clamp_min": 0.0, "clamp_max": 1.0}
TAGS = ("conv_transpose", "pool", "softmax")
MENDS = (
    "KernelBench's softmax over 131,072 points leaves 8e-6 each, which fp16 holds in steps of 0.8 %, and its values of "
    "standard deviation 0.03 hardly pass the clamp's upper end; here scales are about 4096, and inputs are normal, of "
    "standard deviation 16."
)


class Model(torch.nn.Module):
    """scale * softmax over all points of (clamp of (conv_transpose of (avg_pool(x))))."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        output_padding: int,
        pool_kernel_size: int,
    ) -> None:
        super().__init__()
        self.avg_pool = torch.nn.AvgPool3d(pool_kernel_size)
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        self.scale = torch.nn.Parameter(4096.0 * (1.0 + 0.25 * torch.randn(1, out_channels, 1, 1, 1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = self.conv_transpose(self.avg_pool(x)).clamp(SCALARS["clamp_min"], SCALARS["clamp_max"])
        return torch.softmax(y.flatten(2), dim=2).reshape(y.shape) * self.scale


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [16.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "pool_kernel_size")
    return [p[name] for name in names]
