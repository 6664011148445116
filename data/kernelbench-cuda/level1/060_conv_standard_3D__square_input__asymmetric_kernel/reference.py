"""Convolution of volumes with a window of three different extents."""

import torch

# The full problem takes 467 MB in fp16, so that medium is the same.
SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "out_channels": 5,
        "depth": 7,
        "height": 11,
        "width": 13,
        "kernel_d": 2,
        "kernel_h": 3,
        "kernel_w": 5,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 64,
        "height": 64,
        "width": 64,
        "kernel_d": 3,
        "kernel_h": 5,
        "kernel_w": 7,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 3,
        "out_channels": 64,
        "depth": 64,
        "height": 64,
        "width": 64,
        "kernel_d": 3,
        "kernel_h": 5,
        "kernel_w": 7,
    },
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution without padding or bias."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...]) -> None:
        super().__init__()
        self.conv3d = torch.nn.Conv3d(in_channels, out_channels, kernel_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels, extents of the output)."""
        return self.conv3d(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], (p["kernel_d"], p["kernel_h"], p["kernel_w"])]
