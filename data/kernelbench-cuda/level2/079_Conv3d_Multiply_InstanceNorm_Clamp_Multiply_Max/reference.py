"""Convolution times a factor per channel, instance norm, clamped, times the factor again, maximum over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 6,
        "height": 7,
        "width": 35,
        "out_channels": 5,
        "kernel_size": 3,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
    },
}
SCALARS = {"eps": 1e-5, "clamp_min": -1.0, "clamp_max": 1.0}
TAGS = ("conv", "norm", "reduction")
MENDS = "KernelBench's convolution has a bias, which instance norm cancels; here it has none."


class Model(torch.nn.Module):
    """max over the channels of clamp(instance_norm(conv(x) * multiplier)) * multiplier."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size, bias=False)
        self.multiplier = torch.nn.Parameter(torch.randn(out_channels, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out depth, out height, out width)."""
        y = torch.nn.functional.instance_norm(self.conv(x) * self.multiplier, eps=SCALARS["eps"])
        y = torch.clamp(y, SCALARS["clamp_min"], SCALARS["clamp_max"]) * self.multiplier
        return torch.amax(y, dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
