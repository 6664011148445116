"""Convolution, group norm, average over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 6,
        "height": 7,
        "width": 35,
        "out_channels": 6,
        "kernel_size": 3,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 3,
        "depth": 24,
        "height": 32,
        "width": 32,
        "out_channels": 24,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 24,
        "height": 32,
        "width": 32,
        "out_channels": 24,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "num_groups": 8,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv", "norm", "reduction")
MENDS = (
    "KernelBench averages whole samples right after group norm has made their means constant; here the average "
    "goes over the channels alone."
)


class Model(torch.nn.Module):
    """mean over the channels of group_norm(conv(x))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out depth, out height, out width)."""
        return self.group_norm(self.conv(x)).mean(dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
