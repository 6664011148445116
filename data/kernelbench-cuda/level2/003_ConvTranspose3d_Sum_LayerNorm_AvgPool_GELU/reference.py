"""Transposed convolution, a weight per column added, layer norm over each line of columns, means of windows, GELU."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 2,
        "height": 3,
        "width": 35,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_size": 2,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_size": 2,
    },
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_size": 2,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
        "pool_size": 2,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv_transpose", "norm", "pool")
MENDS = (
    "KernelBench adds one number to all values and a bias to each channel, which layer norm over the width "
    "cancels; here a number per column is added and the convolution has no bias."
)


class Model(torch.nn.Module):
    """gelu(avg_pool(layer_norm(conv_transpose(x) + sum_weight))), layer norm over the width."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int,
        padding: int,
        output_padding: int,
        pool_size: int,
        width: int,
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, bias=False
        )
        out_width = (width - 1) * stride - 2 * padding + kernel_size + output_padding
        self.sum_weight = torch.nn.Parameter(torch.randn(out_width))
        self.norm = torch.nn.LayerNorm(out_width, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.norm.bias, std=0.2)
        self.avg_pool = torch.nn.AvgPool3d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = self.norm(self.conv_transpose(x) + self.sum_weight)
        return torch.nn.functional.gelu(self.avg_pool(y))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


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
        p["width"],
    ]
