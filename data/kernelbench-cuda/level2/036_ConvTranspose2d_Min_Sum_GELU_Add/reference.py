"""Transposed convolution, minimum over its channels, sum over its rows, GELU, a bias."""

import torch

# The full problem fits 16 GB, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 7,
        "in_channels": 5,
        "height": 5,
        "width": 19,
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
        "out_channels": 128,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "height": 128,
        "width": 128,
        "out_channels": 128,
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
TAGS = ("conv_transpose", "reduction")
MENDS = (
    "KernelBench's sums of 256 minima are about -80, where GELU is zero, so that the output is the bias; here "
    "each column of the input has a scale of its own and the convolution's biases are drawn about 0.25, so that "
    "sums lie on both sides of zero."
)


class Model(torch.nn.Module):
    """gelu(sum over height of the minimum over channels of conv_transpose(x)) + bias."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, output_padding: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )
        torch.nn.init.normal_(self.conv_transpose.bias, mean=0.25, std=0.05)
        self.bias = torch.nn.Parameter(torch.randn(1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, 1, 1, out width)."""
        y = torch.amin(self.conv_transpose(x), dim=1, keepdim=True).sum(dim=2, keepdim=True)
        return torch.nn.functional.gelu(y) + self.bias


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, p["width"])
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
