"""Convolution plus an activated, normalised copy of itself; log-sum-exp over the channels."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 5,
        "height": 19,
        "width": 37,
        "out_channels": 12,
        "kernel_size": 3,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 16,
        "in_channels": 8,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "num_groups": 16,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 8,
        "height": 128,
        "width": 128,
        "out_channels": 64,
        "kernel_size": 3,
        "num_groups": 16,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 3,
        "height": 32,
        "width": 32,
        "out_channels": 16,
        "kernel_size": 3,
        "num_groups": 8,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv", "norm", "softmax")
MENDS = (
    "KernelBench's inputs from [0, 1) give a log-sum-exp of 64 small values, which varies by 1 %; here inputs are "
    "normal, of standard deviation 4."
)


class Model(torch.nn.Module):
    """logsumexp(y + hardswish(tanh(group_norm(y)))) over the channels, with y = conv(x)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, num_groups: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, 1, out height, out width)."""
        y = self.conv(x)
        return torch.logsumexp(y + torch.nn.functional.hardswish(torch.tanh(self.group_norm(y))), dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["num_groups"]]
