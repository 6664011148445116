"""Average pooling over two axes, with large windows that do not overlap."""

import torch

SIZES = {
    "small": {"batch_size": 3, "channels": 5, "height": 103, "width": 113, "kernel_size": 11},
    "medium": {"batch_size": 4, "channels": 64, "height": 1024, "width": 1024, "kernel_size": 11},
    "full": {"batch_size": 16, "channels": 64, "height": 2048, "width": 2048, "kernel_size": 11},
    "v0": {"batch_size": 16, "channels": 64, "height": 256, "width": 256, "kernel_size": 3},
}
TAGS = ("pool",)


class Model(torch.nn.Module):
    """Mean over windows that touch and do not overlap."""

    def __init__(self, kernel_size: int) -> None:
        super().__init__()
        self.pool = torch.nn.AvgPool2d(kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, height, width) -> (batch_size, channels, windows along each axis)."""
        return self.pool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["channels"], p["height"], p["width"])
    return [torch.rand(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"]]
