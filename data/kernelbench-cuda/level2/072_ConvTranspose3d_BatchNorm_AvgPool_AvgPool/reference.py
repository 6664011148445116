"""Transposed convolution, batch norm, means of windows, means of windows of those."""

import torch

SIZES = {
    "small": {
        "batch_size": 1,
        "in_channels": 2,
        "depth": 4,
        "height": 4,
        "width": 70,
        "out_channels": 3,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 3,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 64,
        "in_channels": 3,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv_transpose", "norm", "pool")
MENDS = "KernelBench's convolution has a bias, which the statistics of the batch cancel; here it has none."


class Model(torch.nn.Module):
    """avg_pool(avg_pool(batch_norm(conv_transpose(x)))), with the statistics of the batch."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=False
        )
        self.batch_norm = torch.nn.BatchNorm3d(out_channels, eps=SCALARS["eps"], track_running_stats=False)
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.batch_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = self.batch_norm(self.conv_transpose(x))
        return torch.nn.functional.avg_pool3d(torch.nn.functional.avg_pool3d(y, 2), 2)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
