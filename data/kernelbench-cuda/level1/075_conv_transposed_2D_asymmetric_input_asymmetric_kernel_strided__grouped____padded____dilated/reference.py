"""Strided, padded, dilated transposed convolution of images in groups of channels."""

import torch

# The full problem takes 437 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 4,
        "out_channels": 6,
        "height": 11,
        "width": 13,
        "kernel_h": 3,
        "kernel_w": 5,
        "stride_h": 2,
        "stride_w": 3,
        "padding_h": 1,
        "padding_w": 2,
        "dilation_h": 2,
        "dilation_w": 1,
        "groups": 2,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "height": 128,
        "width": 256,
        "kernel_h": 3,
        "kernel_w": 5,
        "stride_h": 2,
        "stride_w": 3,
        "padding_h": 1,
        "padding_w": 2,
        "dilation_h": 2,
        "dilation_w": 1,
        "groups": 4,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 32,
        "out_channels": 64,
        "height": 128,
        "width": 256,
        "kernel_h": 3,
        "kernel_w": 5,
        "stride_h": 2,
        "stride_w": 3,
        "padding_h": 1,
        "padding_w": 2,
        "dilation_h": 2,
        "dilation_w": 1,
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
        dilation: tuple[int, ...],
        groups: int,
    ) -> None:
        super().__init__()
        self.conv_transpose2d = torch.nn.ConvTranspose2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv_transpose2d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [
        p["in_channels"],
        p["out_channels"],
        (p["kernel_h"], p["kernel_w"]),
        (p["stride_h"], p["stride_w"]),
        (p["padding_h"], p["padding_w"]),
        (p["dilation_h"], p["dilation_w"]),
        p["groups"],
    ]
