"""Convolution, group norm, bounded from above, clamped; dropout is off."""

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
        "depth": 16,
        "height": 64,
        "width": 64,
        "out_channels": 16,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 64,
        "width": 64,
        "out_channels": 16,
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
SCALARS = {"eps": 1e-5, "bound": 0.5, "clamp_min": 0.0, "clamp_max": 1.0}
TAGS = ("conv", "norm")
MENDS = (
    "KernelBench takes the minimum with 0 and clamps to [0, 1], so that the output is zero; here the minimum is "
    "taken with 0.5."
)


class Model(torch.nn.Module):
    """clamp(min(group_norm(conv(x)), bound), clamp_min, clamp_max)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = torch.clamp(self.norm(self.conv(x)), max=SCALARS["bound"])
        return torch.clamp(y, SCALARS["clamp_min"], SCALARS["clamp_max"])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
