"""The stages of EfficientNet-B2, with channels gated by what their means say."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 31, "width": 2, "num_classes": 13},
    "medium": {"batch_size": 2, "image": 224, "width": 16, "num_classes": 1000},
    "full": {"batch_size": 2, "image": 224, "width": 16, "num_classes": 1000},
}
TAGS = ("conv", "depthwise", "norm", "network")
MENDS = (
    "KernelBench's squeeze and excitation puts gates in the place of the image, so that one value per channel is "
    "left, and normalises over two samples. Here gates multiply the image, and statistics are given."
)


# Channels as multiples of the width, stride and expansion of each block.
BLOCKS = ((6, 1, 3), (9, 2, 6), (12, 2, 6), (18, 2, 6), (24, 1, 6))


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    torch.nn.init.normal_(layer.running_mean, std=0.2)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Gate(torch.nn.Module):
    """x times a sigmoid per channel, by two 1x1 convolutions of the means of all planes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.reduce = torch.nn.Conv2d(channels, channels // 4, kernel_size=1, bias=False)
        self.expand = torch.nn.Conv2d(channels // 4, channels, kernel_size=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.expand(torch.relu(self.reduce(x.mean(dim=(2, 3), keepdim=True)))))


def block(before: int, channels: int, stride: int, expansion: int) -> torch.nn.Sequential:
    """1x1 into more channels, a filter of 3x3 for each of them, gates, 1x1 into few; rectifiers after the first two."""
    hidden = before * expansion
    return torch.nn.Sequential(
        torch.nn.Conv2d(before, hidden, kernel_size=1, bias=False),
        norm(hidden),
        torch.nn.ReLU(),
        torch.nn.Conv2d(hidden, hidden, kernel_size=3, stride=stride, padding=1, groups=hidden, bias=False),
        norm(hidden),
        torch.nn.ReLU(),
        Gate(hidden),
        torch.nn.Conv2d(hidden, channels, kernel_size=1, bias=False),
        norm(channels),
    )


class Model(torch.nn.Module):
    """A strided convolution, the blocks, a 1x1 convolution, the mean of each plane, a linear layer.

    Width is 16 in EfficientNet-B2. Normalisations use running statistics, which are drawn, and weights keep the size
    of what passes through.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        before = 2 * width
        self.conv1 = torch.nn.Conv2d(3, before, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = norm(before)
        for index, (multiple, stride, expansion) in enumerate(BLOCKS, start=1):
            self.add_module(f"mbconv{index}", block(before, multiple * width, stride, expansion))
            before = multiple * width
        self.conv_final = torch.nn.Conv2d(before, 88 * width, kernel_size=1, bias=False)
        self.bn_final = norm(88 * width)
        self.fc = torch.nn.Linear(88 * width, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = torch.relu(self.bn1(self.conv1(x)))
        for index in range(1, len(BLOCKS) + 1):
            x = self.get_submodule(f"mbconv{index}")(x)
        return self.fc(torch.relu(self.bn_final(self.conv_final(x))).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
