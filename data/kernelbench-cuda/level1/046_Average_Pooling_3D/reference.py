"""Average pooling over three axes."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "channels": 3,
        "depth": 21,
        "height": 23,
        "width": 37,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "channels": 32,
        "depth": 128,
        "height": 128,
        "width": 128,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 16,
        "channels": 32,
        "depth": 128,
        "height": 128,
        "width": 256,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "v0": {
        "batch_size": 16,
        "channels": 32,
        "depth": 64,
        "height": 64,
        "width": 64,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
TAGS = ("pool",)


class Model(torch.nn.Module):
    """Mean over windows, with padding counted as zeros."""

    def __init__(self, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.pool = torch.nn.AvgPool3d(kernel_size, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, depth, height, width) -> (batch_size, channels, windows along each axis)."""
        return self.pool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["channels"], p["depth"], p["height"], p["width"])
    return [torch.rand(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"], p["stride"], p["padding"]]
