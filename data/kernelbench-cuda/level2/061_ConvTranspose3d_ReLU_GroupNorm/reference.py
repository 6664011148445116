"""Transposed convolution without bias, rectified, group norm."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 35,
        "out_channels": 6,
        "kernel_size": 3,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 64,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "depth": 32,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 3,
        "num_groups": 8,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 64,
        "depth": 8,
        "height": 16,
        "width": 16,
        "out_channels": 128,
        "kernel_size": 3,
        "num_groups": 8,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv_transpose", "norm")


class Model(torch.nn.Module):
    """group_norm(relu(conv_transpose(x)))."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size, bias=False)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        return self.group_norm(torch.relu(self.conv_transpose(x)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
