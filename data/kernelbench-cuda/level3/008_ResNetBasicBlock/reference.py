"""ResNet's basic block: two convolutions beside a 1x1 one, each normalised with the statistics of the batch."""

import torch

SIZES = {
    "small": {"batch_size": 3, "in_channels": 3, "out_channels": 13, "stride": 1, "height": 19, "width": 27},
    "medium": {"batch_size": 10, "in_channels": 3, "out_channels": 64, "stride": 1, "height": 112, "width": 112},
    "full": {"batch_size": 10, "in_channels": 3, "out_channels": 64, "stride": 1, "height": 224, "width": 224},
}
TAGS = ("conv", "norm", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Model(torch.nn.Module):
    """relu(bn(conv(relu(bn(conv(x))))) + bn(1x1 conv(x)))."""

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = norm(out_channels)
        self.conv2 = torch.nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = norm(out_channels)
        conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride, bias=False)
        self.downsample = torch.nn.Sequential(conv, norm(out_channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height / stride, width / stride)."""
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.downsample(x))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["stride"]]
