"""ShuffleNet's unit: grouped 1x1 convolutions, whose groups exchange channels in between."""

import torch

SIZES = {
    "small": {"batch_size": 2, "in_channels": 15, "out_channels": 36, "groups": 3, "height": 13, "width": 15},
    "medium": {"batch_size": 10, "in_channels": 240, "out_channels": 480, "groups": 3, "height": 112, "width": 112},
    "full": {"batch_size": 10, "in_channels": 240, "out_channels": 480, "groups": 3, "height": 224, "width": 224},
}
TAGS = ("conv", "depthwise", "norm", "network")
MENDS = (
    "With the statistics of a batch, as KernelBench's evaluation has it, the shift of the second normalisation does "
    "nothing, for the third one takes it away. Here statistics are given."
)


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    torch.nn.init.normal_(layer.running_mean, std=0.2)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Model(torch.nn.Module):
    """Grouped 1x1, depthwise 3x3, exchange of channels between groups, grouped 1x1; a 1x1 convolution beside them.

    Normalisations use running statistics, which are drawn.
    """

    def __init__(self, in_channels: int, out_channels: int, groups: int) -> None:
        super().__init__()
        middle = out_channels // 4
        self.groups = groups
        self.conv1 = torch.nn.Conv2d(in_channels, middle, kernel_size=1, groups=groups, bias=False)
        self.bn1 = norm(middle)
        self.conv2 = torch.nn.Conv2d(middle, middle, kernel_size=3, padding=1, groups=middle, bias=False)
        self.bn2 = norm(middle)
        self.conv3 = torch.nn.Conv2d(middle, out_channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = norm(out_channels)
        self.shortcut = torch.nn.Sequential(
            torch.nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False), norm(out_channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height, width)."""
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        y = y.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        return torch.relu(self.bn3(self.conv3(y))) + self.shortcut(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["groups"]]
