"""MobileNetV2: seventeen inverted bottlenecks, which are wide inside and narrow between."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 39, "width": 1, "num_classes": 13},
    "medium": {"batch_size": 10, "image": 224, "width": 8, "num_classes": 1000},
    "full": {"batch_size": 10, "image": 224, "width": 8, "num_classes": 1000},
}
TAGS = ("conv", "depthwise", "norm", "network")
MENDS = (
    "With the statistics of a batch, as KernelBench's evaluation has it, the shift of a normalisation before a linear "
    "convolution does nothing, for the next one takes it away. Here statistics are given."
)


# Expansion, channels as multiples of the width, blocks, stride of the first one.
STAGES = ((1, 2, 1, 1), (6, 3, 2, 2), (6, 4, 3, 2), (6, 8, 4, 2), (6, 12, 3, 1), (6, 20, 3, 2), (6, 40, 1, 1))


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.6)
    torch.nn.init.normal_(layer.running_mean, std=0.5)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


def block(before: int, channels: int, stride: int, expansion: int) -> torch.nn.Sequential:
    """1x1 into more channels (unless expansion is 1), a filter for each of them, 1x1 into few; no shortcut."""
    hidden = before * expansion
    layers: list[torch.nn.Module] = []
    if expansion != 1:
        layers += [torch.nn.Conv2d(before, hidden, kernel_size=1, bias=False), norm(hidden), torch.nn.ReLU6()]
    layers += [
        torch.nn.Conv2d(hidden, hidden, kernel_size=3, stride=stride, padding=1, groups=hidden, bias=False),
        norm(hidden),
        torch.nn.ReLU6(),
        torch.nn.Conv2d(hidden, channels, kernel_size=1, bias=False),
        norm(channels),
    ]
    return torch.nn.Sequential(*layers)


class Model(torch.nn.Module):
    """A strided convolution, the blocks, a 1x1 convolution, the mean of each plane, a linear layer.

    Width is 8 in MobileNetV2. As in KernelBench no block adds its input. Normalisations use running statistics, which
    are drawn, and weights keep the size of what passes through.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        before = 4 * width
        layers: list[torch.nn.Module] = [
            torch.nn.Conv2d(3, before, kernel_size=3, stride=2, padding=1, bias=False),
            norm(before),
            torch.nn.ReLU6(),
        ]
        for expansion, multiple, blocks, stride in STAGES:
            for index in range(blocks):
                layers.append(block(before, multiple * width, stride if index == 0 else 1, expansion))
                before = multiple * width
        last = 160 * width
        layers += [torch.nn.Conv2d(before, last, kernel_size=1, bias=False), norm(last), torch.nn.ReLU6()]
        self.features = torch.nn.Sequential(*layers)
        self.classifier = torch.nn.Linear(last, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        # So wide that some values pass the bound of the first ReLU6.
        torch.nn.init.normal_(self.features[1].weight, mean=2.5, std=0.3)
        torch.nn.init.normal_(self.classifier.bias, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
