"""ResNet-101: 33 bottleneck blocks in four stages, normalised with the statistics of the batch."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "image": 45,
        "width": 2,
        "layers1": 1,
        "layers2": 2,
        "layers3": 2,
        "layers4": 1,
        "num_classes": 61,
    },
    "medium": {
        "batch_size": 10,
        "image": 224,
        "width": 64,
        "layers1": 3,
        "layers2": 4,
        "layers3": 23,
        "layers4": 3,
        "num_classes": 1000,
    },
    "full": {
        "batch_size": 10,
        "image": 224,
        "width": 64,
        "layers1": 3,
        "layers2": 4,
        "layers3": 23,
        "layers4": 3,
        "num_classes": 1000,
    },
}
TAGS = ("conv", "norm", "pool", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Block(torch.nn.Module):
    """1x1, 3x3 and 1x1 into four times as many channels, plus x, which passes a 1x1 convolution if shapes change."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(before, channels, kernel_size=1, bias=False)
        self.bn1 = norm(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = norm(channels)
        self.conv3 = torch.nn.Conv2d(channels, 4 * channels, kernel_size=1, bias=False)
        self.bn3 = norm(4 * channels)
        self.downsample = None
        if stride != 1 or before != 4 * channels:
            conv = torch.nn.Conv2d(before, 4 * channels, kernel_size=1, stride=stride, bias=False)
            self.downsample = torch.nn.Sequential(conv, norm(4 * channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))
        return torch.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


def stage(before: int, channels: int, layers: int, stride: int) -> torch.nn.Sequential:
    blocks = [Block(4 * channels, channels, 1) for _ in range(layers - 1)]
    return torch.nn.Sequential(Block(before, channels, stride), *blocks)


class Model(torch.nn.Module):
    """A strided convolution and pooling, four stages of blocks, global average, linear layer.

    Blocks are width, 2, 4 and 8 * width channels wide inside; width is 64 in ResNet-101.
    """

    def __init__(self, layers: list[int], num_classes: int, width: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = norm(width)
        self.layer1 = stage(width, width, layers[0], 1)
        self.layer2 = stage(4 * width, 2 * width, layers[1], 2)
        self.layer3 = stage(8 * width, 4 * width, layers[2], 2)
        self.layer4 = stage(16 * width, 8 * width, layers[3], 2)
        self.fc = torch.nn.Linear(32 * width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [[p[f"layers{stage}"] for stage in (1, 2, 3, 4)], p["num_classes"], p["width"]]
