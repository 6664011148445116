"""Transposed convolution, batch norm, tanh, maxima of windows, group norm."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "height": 6,
        "width": 73,
        "out_channels": 6,
        "kernel_size": 5,
        "stride": 1,
        "padding": 1,
        "num_groups": 3,
    },
    "medium": {
        "batch_size": 128,
        "in_channels": 64,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 5,
        "stride": 1,
        "padding": 1,
        "num_groups": 8,
    },
    "full": {
        "batch_size": 512,
        "in_channels": 64,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 5,
        "stride": 1,
        "padding": 1,
        "num_groups": 8,
    },
    "v0": {
        "batch_size": 128,
        "in_channels": 32,
        "height": 32,
        "width": 32,
        "out_channels": 64,
        "kernel_size": 4,
        "stride": 2,
        "padding": 1,
        "num_groups": 4,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv_transpose", "norm", "pool")
MENDS = "KernelBench's convolution has a bias, which the statistics of the batch cancel; here it has none."


class Model(torch.nn.Module):
    """group_norm(max_pool(tanh(batch_norm(conv_transpose(x))))), with the statistics of the batch."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int, num_groups: int
    ) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, bias=False
        )
        self.batch_norm = torch.nn.BatchNorm2d(out_channels, eps=SCALARS["eps"], track_running_stats=False)
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.batch_norm.bias, std=0.2)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.group_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.group_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, out height, out width)."""
        y = torch.tanh(self.batch_norm(self.conv_transpose(x)))
        return self.group_norm(torch.nn.functional.max_pool2d(y, 2))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"], p["num_groups"]]
