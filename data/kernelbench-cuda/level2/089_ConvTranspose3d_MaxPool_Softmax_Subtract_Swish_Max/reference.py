"""Transposed convolution, maxima of windows, softmax over the channels, a shift, swish, maximum over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 35,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_size": 2,
        "pool_stride": 2,
        "pool_padding": 0,
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
        "output_padding": 1,
        "pool_size": 2,
        "pool_stride": 2,
        "pool_padding": 0,
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
        "output_padding": 1,
        "pool_size": 2,
        "pool_stride": 2,
        "pool_padding": 0,
    },
}
TAGS = ("conv_transpose", "pool", "softmax", "reduction")
MENDS = (
    "KernelBench's probabilities vary by 0.001 beside subtrahends of standard deviation 1; here inputs are "
    "normal, of standard deviation 16, and biases have a standard deviation of 1."
)


class Model(torch.nn.Module):
    """max over the channels of swish(softmax over the channels of max_pool(conv_transpose(x)) - subtract)."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        output_padding: int,
        pool_size: int,
        pool_stride: int,
        pool_padding: int,
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        torch.nn.init.normal_(self.conv_transpose.bias)
        self.max_pool = torch.nn.MaxPool3d(pool_size, pool_stride, pool_padding)
        self.subtract = torch.nn.Parameter(torch.randn(out_channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, pooled depth, pooled height, pooled width)."""
        y = torch.softmax(self.max_pool(self.conv_transpose(x)), dim=1) - self.subtract[:, None, None, None]
        return torch.amax(torch.nn.functional.silu(y), dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [16.0 * torch.randn(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [
        p["in_channels"],
        p["out_channels"],
        p["kernel_size"],
        p["stride"],
        p["padding"],
        p["output_padding"],
        p["pool_size"],
        p["pool_stride"],
        p["pool_padding"],
    ]
