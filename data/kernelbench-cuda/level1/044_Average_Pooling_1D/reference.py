"""Average pooling over one axis, with overlapping windows."""

import torch

SIZES = {
    "small": {"batch_size": 3, "channels": 7, "length": 1009, "kernel_size": 8, "stride": 1, "padding": 4},
    "medium": {"batch_size": 8, "channels": 128, "length": 65536, "kernel_size": 8, "stride": 1, "padding": 4},
    "full": {"batch_size": 64, "channels": 128, "length": 65536, "kernel_size": 8, "stride": 1, "padding": 4},
    "v0": {"batch_size": 16, "channels": 32, "length": 128, "kernel_size": 4, "stride": 2, "padding": 1},
}
TAGS = ("pool",)


class Model(torch.nn.Module):
    """Mean over windows, with padding counted as zeros."""

    def __init__(self, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.pool = torch.nn.AvgPool1d(kernel_size, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, length) -> (batch_size, channels, windows along each axis)."""
        return self.pool(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["channels"], p["length"])
    return [torch.rand(shape)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["kernel_size"], p["stride"], p["padding"]]
