"""Convolution, each plane of its result normalised and divided by a constant."""

import torch

SIZES = {
    "small": {"batch_size": 3, "in_channels": 5, "height": 19, "width": 37, "out_channels": 11, "kernel_size": 3},
    "medium": {"batch_size": 16, "in_channels": 64, "height": 128, "width": 128, "out_channels": 128, "kernel_size": 3},
    "full": {"batch_size": 128, "in_channels": 64, "height": 128, "width": 128, "out_channels": 128, "kernel_size": 3},
    "v0": {"batch_size": 128, "in_channels": 3, "height": 32, "width": 32, "out_channels": 16, "kernel_size": 3},
}
SCALARS = {"eps": 1e-5, "divisor": 2.0}
TAGS = ("conv", "norm")
MENDS = "KernelBench's convolution has a bias, which instance norm cancels; here it has none."


class Model(torch.nn.Module):
    """instance_norm(conv(x)) / divisor."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)
        self.instance_norm = torch.nn.InstanceNorm2d(out_channels, eps=SCALARS["eps"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        return self.instance_norm(self.conv(x)) / SCALARS["divisor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
