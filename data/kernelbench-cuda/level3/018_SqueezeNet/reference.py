"""SqueezeNet: eight fire modules between poolings, and a 1x1 convolution whose planes' means are the classes."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 31, "width": 3, "num_classes": 19},
    "medium": {"batch_size": 8, "image": 512, "width": 16, "num_classes": 1000},
    "full": {"batch_size": 64, "image": 512, "width": 16, "num_classes": 1000},
    "v0": {"batch_size": 1, "image": 224, "width": 16, "num_classes": 1000},
}
TAGS = ("conv", "pool", "network")
MENDS = (
    "KernelBench's default weights shrink what passes through from layer to layer, so that biases decide the output. "
    "Here weights keep its size, and inputs are normal."
)


def scaled(model: torch.nn.Module) -> None:
    """Draws weights so large that what passes through rectifiers keeps its size."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.normal_(layer.bias, std=0.2)


class Fire(torch.nn.Module):
    """relu(1x1) into few channels, then relu(1x1) and relu(3x3) of those side by side."""

    def __init__(self, before: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = torch.nn.Conv2d(before, squeezed, kernel_size=1)
        self.expand1x1 = torch.nn.Conv2d(squeezed, expanded, kernel_size=1)
        self.expand3x3 = torch.nn.Conv2d(squeezed, expanded, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1x1(x)), torch.relu(self.expand3x3(x))], dim=1)


class Model(torch.nn.Module):
    """Fire modules with 1 to 4 times `width` channels inside, 16 in SqueezeNet, and 8 times as many outside.

    Poolings round their extents up. KernelBench's dropout layer has probability 0 and is left out.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        w = width
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6 * w, kernel_size=7, stride=2),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(6 * w, w, 4 * w),
            Fire(8 * w, w, 4 * w),
            Fire(8 * w, 2 * w, 8 * w),
            torch.nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(16 * w, 2 * w, 8 * w),
            Fire(16 * w, 3 * w, 12 * w),
            Fire(24 * w, 3 * w, 12 * w),
            Fire(24 * w, 4 * w, 16 * w),
            torch.nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(32 * w, 4 * w, 16 * w),
        )
        self.classifier = torch.nn.Sequential(torch.nn.Conv2d(32 * w, num_classes, kernel_size=1), torch.nn.ReLU())
        scaled(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        return self.classifier(self.features(x)).mean(dim=(2, 3))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
