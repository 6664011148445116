"""Transposed convolution plus a second input, times its own HardSwish."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 18,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 32,
        "depth": 16,
        "height": 16,
        "width": 16,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 32,
        "depth": 16,
        "height": 16,
        "width": 16,
        "out_channels": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
}
TAGS = ("conv_transpose",)
MENDS = "KernelBench declares a bias that it never adds; here there is none."


class Model(torch.nn.Module):
    """z * hardswish(z) with z = conv_transpose(x) + add_input."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, output_padding: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )

    def forward(self, x: torch.Tensor, add_input: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, d, h, w), (batch, out_channels, 2 d, 2 h, 2 w) -> like the second."""
        z = self.conv_transpose(x) + add_input
        return z * torch.nn.functional.hardswish(z)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"]),
        torch.randn(p["batch_size"], p["out_channels"], 2 * p["depth"], 2 * p["height"], 2 * p["width"]),
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
