"""Transposed convolution, scaled, averaged over its rows, then over its columns."""

import torch

SIZES = {
    "small": {
        "batch_size": 19,
        "in_channels": 5,
        "height": 5,
        "width": 9,
        "out_channels": 7,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "output_padding": 1,
    },
    "medium": {
        "batch_size": 8,
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
SCALARS = {"multiplier": 0.5}
TAGS = ("conv_transpose", "reduction")
MENDS = (
    "KernelBench averages whole planes twice, the second time over one element, and all samples give nearly the "
    "same; here rows are averaged first and columns second, and each sample has a scale of its own."
)


class Model(torch.nn.Module):
    """mean over width of mean over height of multiplier * conv_transpose(x)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, output_padding: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, 1, 1)."""
        y = self.conv_transpose(x) * SCALARS["multiplier"]
        return y.mean(dim=2, keepdim=True).mean(dim=3, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        8.0
        * torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, 1)
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["output_padding"]]
