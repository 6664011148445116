"""Max pooling over three axes, with dilated windows."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "channels": 3,
        "depth": 23,
        "height": 25,
        "width": 27,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 3,
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
        "dilation": 3,
    },
    "full": {
        "batch_size": 16,
        "channels": 32,
        "depth": 128,
        "height": 128,
        "width": 128,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
        "dilation": 3,
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
        "dilation": 3,
    },
}
TAGS = ("pool",)
MENDS = "KernelBench draws from [0, 1), where the maximum of a window is nearly constant. Here inputs are normal."


class Model(torch.nn.Module):
    """Maximum over windows; padding never wins."""

    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.maxpool = torch.nn.MaxPool3d(kernel_size, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, depth, height, width) -> (batch_size, channels, windows along each axis)."""
        return self.maxpool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["channels"], p["depth"], p["height"], p["width"])
    return [torch.randn(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
