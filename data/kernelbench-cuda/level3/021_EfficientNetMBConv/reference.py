"""EfficientNet's MBConv: 1x1 into many channels, a filter for each of them, 1x1 back into few."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 5,
        "out_channels": 7,
        "height": 23,
        "width": 21,
        "kernel_size": 5,
        "stride": 2,
        "expand_ratio": 6,
    },
    "medium": {
        "batch_size": 10,
        "in_channels": 112,
        "out_channels": 192,
        "height": 112,
        "width": 112,
        "kernel_size": 5,
        "stride": 2,
        "expand_ratio": 6,
    },
    "full": {
        "batch_size": 10,
        "in_channels": 112,
        "out_channels": 192,
        "height": 224,
        "width": 224,
        "kernel_size": 5,
        "stride": 2,
        "expand_ratio": 6,
    },
}
TAGS = ("conv", "depthwise", "norm", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Model(torch.nn.Module):
    """Three normalised convolutions, the first two with ReLU6; adds its input where shapes allow it."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, expand_ratio: int) -> None:
        super().__init__()
        self.adds_input = stride == 1 and in_channels == out_channels
        hidden = in_channels * expand_ratio
        self.expand_conv = torch.nn.Sequential(
            torch.nn.Conv2d(in_channels, hidden, kernel_size=1, bias=False), norm(hidden), torch.nn.ReLU6()
        )
        self.depthwise_conv = torch.nn.Sequential(
            torch.nn.Conv2d(
                hidden, hidden, kernel_size, stride=stride, padding=(kernel_size - 1) // 2, groups=hidden, bias=False
            ),
            norm(hidden),
            torch.nn.ReLU6(),
        )
        self.project_conv = torch.nn.Sequential(
            torch.nn.Conv2d(hidden, out_channels, kernel_size=1, bias=False), norm(out_channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height / stride, width / stride)."""
        y = self.project_conv(self.depthwise_conv(self.expand_conv(x)))
        return y + x if self.adds_input else y


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["expand_ratio"]]
