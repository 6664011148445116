"""Max pooling over one axis, with dilated windows."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "channels": 7,
        "length": 1009,
        "kernel_size": 8,
        "stride": 1,
        "padding": 4,
        "dilation": 3,
    },
    "medium": {
        "batch_size": 8,
        "channels": 192,
        "length": 65536,
        "kernel_size": 8,
        "stride": 1,
        "padding": 4,
        "dilation": 3,
    },
    "full": {
        "batch_size": 64,
        "channels": 192,
        "length": 65536,
        "kernel_size": 8,
        "stride": 1,
        "padding": 4,
        "dilation": 3,
    },
    "v0": {"batch_size": 16, "channels": 64, "length": 128, "kernel_size": 4, "stride": 2, "padding": 2, "dilation": 3},
}
TAGS = ("pool",)
MENDS = "KernelBench draws from [0, 1), where the maximum of a window is nearly constant. Here inputs are normal."


class Model(torch.nn.Module):
    """Maximum over windows; padding never wins."""

    def __init__(self, kernel_size: int, stride: int, padding: int, dilation: int) -> None:
        super().__init__()
        self.maxpool = torch.nn.MaxPool1d(kernel_size, stride, padding, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, length) -> (batch_size, channels, windows along each axis)."""
        return self.maxpool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["channels"], p["length"])
    return [torch.randn(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"], p["stride"], p["padding"], p["dilation"]]
