"""MobileNetV1: thirteen pairs of a depthwise and a 1x1 convolution, each normalised."""

import torch

SIZES = {
    "small": {"batch_size": 3, "image": 33, "width": 4, "num_classes": 19},
    "medium": {"batch_size": 10, "image": 224, "width": 32, "num_classes": 1000},
    "full": {"batch_size": 10, "image": 224, "width": 32, "num_classes": 1000},
}
TAGS = ("conv", "depthwise", "norm", "network")


# Channels as multiples of the width, and stride of each pair.
PAIRS = ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1))


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    torch.nn.init.normal_(layer.running_mean, std=0.2)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Model(torch.nn.Module):
    """A strided convolution, the pairs, the mean of each plane, and a linear layer; width is 32 in MobileNet.

    Normalisations use running statistics, which are drawn: with those of a batch, 27 of them in a row make too much of
    what 16 bits round. Weights keep the size of what passes through.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        first = torch.nn.Conv2d(3, width, kernel_size=3, stride=2, padding=1, bias=False)
        layers = [torch.nn.Sequential(first, norm(width), torch.nn.ReLU())]
        before = width
        for multiple, stride in PAIRS:
            channels = multiple * width
            layers.append(
                torch.nn.Sequential(
                    torch.nn.Conv2d(before, before, 3, stride=stride, padding=1, groups=before, bias=False),
                    norm(before),
                    torch.nn.ReLU(),
                    torch.nn.Conv2d(before, channels, kernel_size=1, bias=False),
                    norm(channels),
                    torch.nn.ReLU(),
                )
            )
            before = channels
        self.model = torch.nn.Sequential(*layers)
        self.fc = torch.nn.Linear(before, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        return self.fc(self.model(x).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
