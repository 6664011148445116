"""GoogLeNet: nine inception modules, each four branches side by side, between poolings."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 45, "width": 1, "num_classes": 13},
    "medium": {"batch_size": 10, "image": 224, "width": 8, "num_classes": 1000},
    "full": {"batch_size": 10, "image": 224, "width": 8, "num_classes": 1000},
}
TAGS = ("conv", "pool", "network")
MENDS = (
    "KernelBench's default weights shrink what passes through from layer to layer, so that biases decide the output. "
    "Here weights keep its size, and inputs are normal."
)


# Channels of each module as multiples of the width: 1x1; 1x1 before 3x3, 3x3; 1x1 before 5x5, 5x5; 1x1 after pooling.
MODULES = {
    "3a": (8, 12, 16, 2, 4, 4),
    "3b": (16, 16, 24, 4, 12, 8),
    "4a": (24, 12, 26, 2, 6, 8),
    "4b": (20, 14, 28, 3, 8, 8),
    "4c": (16, 16, 32, 3, 8, 8),
    "4d": (14, 18, 36, 4, 8, 8),
    "4e": (32, 20, 40, 4, 16, 16),
    "5a": (32, 20, 40, 4, 16, 16),
    "5b": (48, 24, 48, 6, 16, 16),
}


def scaled(model: torch.nn.Module) -> None:
    """Draws weights so large that what passes through rectifiers keeps its size."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.normal_(layer.bias, std=0.5)


class Inception(torch.nn.Module):
    """1x1, 1x1 then 3x3, 1x1 then 5x5, max pooling then 1x1: all with biases and without activations."""

    def __init__(self, before: int, one: int, reduce3: int, three: int, reduce5: int, five: int, pooled: int) -> None:
        super().__init__()
        self.branch1x1 = torch.nn.Conv2d(before, one, kernel_size=1)
        self.branch3x3 = torch.nn.Sequential(
            torch.nn.Conv2d(before, reduce3, kernel_size=1),
            torch.nn.Conv2d(reduce3, three, kernel_size=3, padding=1),
        )
        self.branch5x5 = torch.nn.Sequential(
            torch.nn.Conv2d(before, reduce5, kernel_size=1),
            torch.nn.Conv2d(reduce5, five, kernel_size=5, padding=2),
        )
        self.branch_pool = torch.nn.Sequential(
            torch.nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            torch.nn.Conv2d(before, pooled, kernel_size=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.branch1x1(x), self.branch3x3(x), self.branch5x5(x), self.branch_pool(x)], dim=1)


class Model(torch.nn.Module):
    """Three convolutions, nine modules, the mean of each plane, a linear layer; width is 8 in GoogLeNet.

    KernelBench's dropout layer has probability 0 and is left out.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8 * width, kernel_size=7, stride=2, padding=3)
        self.conv2 = torch.nn.Conv2d(8 * width, 8 * width, kernel_size=1)
        self.conv3 = torch.nn.Conv2d(8 * width, 24 * width, kernel_size=3, padding=1)
        before = 24 * width
        for name, multiples in MODULES.items():
            channels = [multiple * width for multiple in multiples]
            self.add_module(f"inception{name}", Inception(before, *channels))
            before = channels[0] + channels[2] + channels[4] + channels[5]
        self.fc = torch.nn.Linear(before, num_classes)
        scaled(self)
        for layer in self.modules():  # no rectifier follows the convolutions of a module
            if isinstance(layer, Inception):
                for conv in layer.modules():
                    if isinstance(conv, torch.nn.Conv2d):
                        conv.weight.data *= 0.5**0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = torch.max_pool2d(torch.relu(self.conv1(x)), kernel_size=3, stride=2, padding=1)
        x = torch.relu(self.conv3(torch.relu(self.conv2(x))))
        x = torch.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        for name in MODULES:
            x = self.get_submodule(f"inception{name}")(x)
            if name in ("3b", "4e"):
                x = torch.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
