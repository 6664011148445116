"""SqueezeNet's fire module: few channels in the middle, expanded by 1x1 and 3x3 filters side by side."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "squeeze_channels": 5,
        "expand1x1_channels": 7,
        "expand3x3_channels": 10,
        "height": 23,
        "width": 21,
    },
    "medium": {
        "batch_size": 32,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
        "height": 256,
        "width": 256,
    },
    "full": {
        "batch_size": 128,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
        "height": 256,
        "width": 256,
    },
    "v0": {
        "batch_size": 10,
        "in_channels": 3,
        "squeeze_channels": 6,
        "expand1x1_channels": 64,
        "expand3x3_channels": 64,
        "height": 224,
        "width": 224,
    },
}
TAGS = ("conv", "network")
MENDS = (
    "KernelBench draws from [0, 1), where most outputs hardly differ from pixel to pixel. Here inputs are normal."
)


class Model(torch.nn.Module):
    """relu(1x1) into few channels, then relu(1x1) and relu(3x3) of those, one behind the other."""

    def __init__(
        self, in_channels: int, squeeze_channels: int, expand1x1_channels: int, expand3x3_channels: int
    ) -> None:
        super().__init__()
        self.squeeze = torch.nn.Conv2d(in_channels, squeeze_channels, kernel_size=1)
        self.expand1x1 = torch.nn.Conv2d(squeeze_channels, expand1x1_channels, kernel_size=1)
        self.expand3x3 = torch.nn.Conv2d(squeeze_channels, expand3x3_channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> the same with the channels of both expansions."""
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1x1(x)), torch.relu(self.expand3x3(x))], dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["squeeze_channels"], p["expand1x1_channels"], p["expand3x3_channels"]]
