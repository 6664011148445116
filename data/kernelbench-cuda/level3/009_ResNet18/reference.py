"""ResNet-18: basic blocks in four stages, normalised with the statistics of the batch."""

import torch

SIZES = {
    "small": {"batch_size": 3, "image": 45, "width": 3, "num_classes": 13},
    "medium": {"batch_size": 2, "image": 224, "width": 64, "num_classes": 1000},
    "full": {"batch_size": 2, "image": 224, "width": 64, "num_classes": 1000},
}
TAGS = ("conv", "norm", "pool", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Block(torch.nn.Module):
    """relu(bn(conv(relu(bn(conv(x))))) + x), where x passes a 1x1 convolution if shapes change."""

    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(before, channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = norm(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn2 = norm(channels)
        self.downsample = None
        if stride != 1 or before != channels:
            conv = torch.nn.Conv2d(before, channels, kernel_size=1, stride=stride, bias=False)
            self.downsample = torch.nn.Sequential(conv, norm(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def stage(before: int, channels: int, stride: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(Block(before, channels, stride), Block(channels, channels, 1))


class Model(torch.nn.Module):
    """A strided convolution and pooling, two blocks in each of four stages, global average, linear layer.

    The stages have width, 2, 4 and 8 * width channels; width is 64 in ResNet-18.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = norm(width)
        self.layer1 = stage(width, width, 1)
        self.layer2 = stage(width, 2 * width, 2)
        self.layer3 = stage(2 * width, 4 * width, 2)
        self.layer4 = stage(4 * width, 8 * width, 2)
        self.fc = torch.nn.Linear(8 * width, num_classes)

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
    return [p["num_classes"], p["width"]]
