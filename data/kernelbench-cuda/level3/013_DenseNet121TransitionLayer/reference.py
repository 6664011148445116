"""DenseNet's transition: normalise, rectify, mix channels by a 1x1 convolution, halve the image."""

import torch

SIZES = {
    "small": {"batch_size": 3, "in_channels": 13, "out_channels": 11, "height": 22, "width": 30},
    "medium": {"batch_size": 32, "in_channels": 32, "out_channels": 64, "height": 256, "width": 256},
    "full": {"batch_size": 128, "in_channels": 32, "out_channels": 64, "height": 256, "width": 256},
    "v0": {"batch_size": 10, "in_channels": 32, "out_channels": 64, "height": 224, "width": 224},
}
TAGS = ("norm", "conv", "pool", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Model(torch.nn.Module):
    """Batch normalisation, rectifier, 1x1 convolution, average over windows of 2x2."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.transition = torch.nn.Sequential(
            norm(in_channels),
            torch.nn.ReLU(),
            torch.nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False),
            torch.nn.AvgPool2d(kernel_size=2),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height / 2, width / 2)."""
        return self.transition(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"]]
