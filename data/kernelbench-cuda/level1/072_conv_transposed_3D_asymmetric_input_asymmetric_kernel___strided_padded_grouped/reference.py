"""Strided, padded transposed convolution of volumes in groups of channels."""

import torch

# The full problem takes 64 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 4,
        "out_channels": 6,
        "depth": 5,
        "height": 7,
        "width": 9,
        "kernel_d": 3,
        "kernel_h": 2,
        "kernel_w": 5,
        "stride_d": 2,
        "stride_h": 2,
        "stride_w": 2,
        "padding_d": 1,
        "padding_h": 0,
        "padding_w": 2,
        "output_padding": 1,
        "groups": 2,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 12,
        "height": 24,
        "width": 48,
        "kernel_d": 3,
        "kernel_h": 5,
        "kernel_w": 7,
        "stride_d": 2,
        "stride_h": 2,
        "stride_w": 2,
        "padding_d": 1,
        "padding_h": 2,
        "padding_w": 3,
        "output_padding": 1,
        "groups": 4,
    },
    "full": {
        "batch_size": 8,
        "in_channels": 32,
        "out_channels": 32,
        "depth": 12,
        "height": 24,
        "width": 48,
        "kernel_d": 3,
        "kernel_h": 5,
        "kernel_w": 7,
        "stride_d": 2,
        "stride_h": 2,
        "stride_w": 2,
        "padding_d": 1,
        "padding_h": 2,
        "padding_w": 3,
        "output_padding": 1,
        "groups": 4,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 64,
        "kernel_d": 3,
        "kernel_h": 5,
        "kernel_w": 7,
        "stride_d": 2,
        "stride_h": 2,
        "stride_w": 2,
        "padding_d": 1,
        "padding_h": 2,
        "padding_w": 3,
        "output_padding": 1,
        "groups": 4,
    },
}
TAGS = ("conv_transpose",)


class Model(torch.nn.Module):
    """Transposed convolution without bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        output_padding: int,
        groups: int,
    ) -> None:
        super().__init__()
        self.conv_transpose3d = torch.nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv_transpose3d(x)


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
        (p["kernel_d"], p["kernel_h"], p["kernel_w"]),
        (p["stride_d"], p["stride_h"], p["stride_w"]),
        (p["padding_d"], p["padding_h"], p["padding_w"]),
        p["output_padding"],
        p["groups"],
    ]
