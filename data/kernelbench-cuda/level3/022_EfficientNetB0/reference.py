"""EfficientNet-B0 without its gates: thirteen MBConv blocks with filters of 3x3 and 5x5."""

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


# Channels as multiples of the width, kernel, stride and expansion of each block.
BLOCKS = (
    (2, 3, 1, 1),
    (3, 3, 2, 6),
    (3, 3, 1, 6),
    (5, 5, 2, 6),
    (5, 5, 1, 6),
    (10, 3, 2, 6),
    (10, 3, 1, 6),
    (14, 5, 1, 6),
    (14, 5, 1, 6),
    (24, 5, 2, 6),
    (24, 5, 1, 6),
    (24, 5, 1, 6),
    (40, 3, 1, 6),
)


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.7)
    torch.nn.init.normal_(layer.running_mean, std=0.7)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Block(torch.nn.Module):
    """1x1 into more channels (not if expansion is 1), a filter for each, 1x1 into few; the first two with ReLU6.

    Adds its input where shapes allow it.
    """

    def __init__(self, before: int, channels: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        self.adds_input = stride == 1 and before == channels
        hidden = before * expansion
        self.expand_conv = torch.nn.Identity()
        if expansion != 1:
            conv = torch.nn.Conv2d(before, hidden, kernel_size=1, bias=False)
            self.expand_conv = torch.nn.Sequential(conv, norm(hidden), torch.nn.ReLU6())
        self.depthwise_conv = torch.nn.Sequential(
            torch.nn.Conv2d(hidden, hidden, kernel, stride=stride, padding=kernel // 2, groups=hidden, bias=False),
            norm(hidden),
            torch.nn.ReLU6(),
        )
        self.project_conv = torch.nn.Sequential(
            torch.nn.Conv2d(hidden, channels, kernel_size=1, bias=False), norm(channels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.project_conv(self.depthwise_conv(self.expand_conv(x)))
        return y + x if self.adds_input else y


class Model(torch.nn.Module):
    """A strided convolution, the blocks, a 1x1 convolution, the mean of each plane, a linear layer.

    Width is 8 in EfficientNet-B0. Normalisations use running statistics, which are drawn, and weights keep the size of
    what passes through.
    """

    def __init__(self, num_classes: int, width: int) -> None:
        super().__init__()
        before = 4 * width
        self.conv1 = torch.nn.Conv2d(3, before, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = norm(before)
        self.blocks = torch.nn.Sequential()
        for multiple, kernel, stride, expansion in BLOCKS:
            self.blocks.append(Block(before, multiple * width, kernel, stride, expansion))
            before = multiple * width
        self.conv2 = torch.nn.Conv2d(before, 160 * width, kernel_size=1, bias=False)
        self.bn2 = norm(160 * width)
        self.fc = torch.nn.Linear(160 * width, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        torch.nn.init.normal_(self.fc.bias, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = self.blocks(torch.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.relu(self.bn2(self.conv2(x))).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["width"]]
