"""Convolution through HardSwish, group norm, average over all positions."""

import torch

SIZES = {
    "small": {
        "batch_size": 29,
        "in_channels": 2,
        "depth": 5,
        "height": 6,
        "width": 9,
        "out_channels": 6,
        "kernel_size": 4,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 128,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 4,
        "num_groups": 4,
    },
    "full": {
        "batch_size": 1024,
        "in_channels": 3,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 4,
        "num_groups": 4,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv", "norm", "reduction")
MENDS = (
    "KernelBench's averages over 10,933 positions are the same for all samples; here each sample has a scale of "
    "its own."
)


class Model(torch.nn.Module):
    """mean over depth, height and width of group_norm(hardswish(conv(x)))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(in_channels, out_channels, kernel_size)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, depth, height, width) -> (batch_size, out_channels)."""
        return self.group_norm(torch.nn.functional.hardswish(self.conv(x))).mean(dim=(2, 3, 4))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        8.0
        * torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, 1, 1)
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
