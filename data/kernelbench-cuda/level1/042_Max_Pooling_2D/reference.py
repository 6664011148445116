"""Two-dimensional max pooling with overlapping windows."""

import torch

SIZES = {
    "small": {
        "batch_size": 6,
        "channels": 5,
        "height": 67,
        "width": 71,
        "kernel_size": 4,
        "stride": 1,
        "padding": 1,
        "dilation": 1,
    },
    "medium": {
        "batch_size": 4,
        "channels": 64,
        "height": 512,
        "width": 512,
        "kernel_size": 4,
        "stride": 1,
        "padding": 1,
        "dilation": 1,
    },
    "full": {
        "batch_size": 32,
        "channels": 64,
        "height": 512,
        "width": 512,
        "kernel_size": 4,
        "stride": 1,
        "padding": 1,
        "dilation": 1,
    },
    "v0": {
        "batch_size": 16,
        "channels": 32,
        "height": 128,
        "width": 128,
        "kernel_size": 2,
        "stride": 2,
        "padding": 1,
        "dilation": 3,
    },
}
TAGS = ("pool",)
MENDS = "KernelBench draws from [0, 1), where the maximum of a window is nearly constant. Here inputs are normal."


class Model(torch.nn.Module):
    """Maximum over windows; padding never wins."""

    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.maxpool = torch.nn.MaxPool2d(kernel_size, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, height, width) -> (batch_size, channels, pooled height, pooled width)."""
        return self.maxpool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Normal values where KernelBench draws from [0, 1): there, the maximum of sixteen is nearly constant.
    """
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
