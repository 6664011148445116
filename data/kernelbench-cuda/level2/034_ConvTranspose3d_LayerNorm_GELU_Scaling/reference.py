"""Transposed convolution, layer norm over each line of columns, GELU, scaled."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 2,
        "height": 4,
        "width": 19,
        "out_channels": 5,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 32,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 32,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
    },
}
SCALARS = {"eps": 1e-5, "scaling_factor": 0.5}
TAGS = ("conv_transpose", "norm")
MENDS = (
    "KernelBench's convolution has a bias, which layer norm over the width cancels, and its factor is 1; here "
    "there is no bias and the factor is 0.5."
)


class Model(torch.nn.Module):
    """scaling_factor * gelu(layer_norm(conv_transpose(x))), layer norm over the width."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, width: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=False
        )
        self.layer_norm = torch.nn.LayerNorm((width - 1) * stride - 2 * padding + kernel_size, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.layer_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.layer_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        return torch.nn.functional.gelu(self.layer_norm(self.conv_transpose(x))) * SCALARS["scaling_factor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["width"]]
