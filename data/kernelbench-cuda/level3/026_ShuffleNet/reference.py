"""ShuffleNet: units of grouped 1x1 convolutions, whose groups exchange channels in between, in three stages."""

import torch

SIZES = {
    "small": {
        "batch_size": 7,
        "image": 13,
        "groups": 3,
        "width": 6,
        "width2": 36,
        "width3": 60,
        "width4": 84,
        "last_width": 17,
        "repeats2": 3,
        "repeats3": 7,
        "repeats4": 3,
        "num_classes": 61,
    },
    "medium": {
        "batch_size": 10,
        "image": 112,
        "groups": 3,
        "width": 24,
        "width2": 240,
        "width3": 480,
        "width4": 960,
        "last_width": 1024,
        "repeats2": 3,
        "repeats3": 7,
        "repeats4": 3,
        "num_classes": 1000,
    },
    "full": {
        "batch_size": 10,
        "image": 224,
        "groups": 3,
        "width": 24,
        "width2": 240,
        "width3": 480,
        "width4": 960,
        "last_width": 1024,
        "repeats2": 3,
        "repeats3": 7,
        "repeats4": 3,
        "num_classes": 1000,
    },
}
TAGS = ("conv", "depthwise", "norm", "network")
MENDS = (
    "With the statistics of a batch, as KernelBench's evaluation has it, the shift of a unit's second normalisation "
    "does nothing, for the third one takes it away. Here statistics are given, and weights keep the size of what "
    "passes through; they sum to zero over channels, or the rectifiers' means outgrow what tells images apart."
)


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.5)
    torch.nn.init.normal_(layer.running_mean, std=0.5)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Unit(torch.nn.Module):
    """Grouped 1x1, depthwise 3x3, exchange of channels between groups, grouped 1x1, added to the input.

    Where channels change, the input passes a 1x1 convolution.
    """

    def __init__(self, before: int, channels: int, groups: int) -> None:
        super().__init__()
        middle = channels // 4
        self.groups = groups
        self.conv1 = torch.nn.Conv2d(before, middle, kernel_size=1, groups=groups, bias=False)
        self.bn1 = norm(middle)
        self.conv2 = torch.nn.Conv2d(middle, middle, kernel_size=3, padding=1, groups=middle, bias=False)
        self.bn2 = norm(middle)
        self.conv3 = torch.nn.Conv2d(middle, channels, kernel_size=1, groups=groups, bias=False)
        self.bn3 = norm(channels)
        self.shortcut = None
        if before != channels:
            conv = torch.nn.Conv2d(before, channels, kernel_size=1, bias=False)
            self.shortcut = torch.nn.Sequential(conv, norm(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        y = y.unflatten(1, (self.groups, -1)).transpose(1, 2).flatten(1, 2)
        return torch.relu(self.bn3(self.conv3(y))) + (x if self.shortcut is None else self.shortcut(x))


def stage(before: int, channels: int, groups: int, repeats: int) -> torch.nn.Sequential:
    """Units, of which the first one changes the channels."""
    return torch.nn.Sequential(*(Unit(before if unit == 0 else channels, channels, groups) for unit in range(repeats)))


class Model(torch.nn.Module):
    """A strided convolution and pooling, three stages of units, a 1x1 convolution, global average, linear layer.

    Normalisations use running statistics, which are drawn. As in KernelBench no unit halves the image.
    """

    def __init__(
        self, num_classes: int, groups: int, repeats: list[int], width: int, widths: list[int], last_width: int
    ) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, width, kernel_size=3, stride=2, padding=1, bias=False)
        self.bn1 = norm(width)
        self.stage2 = stage(width, widths[0], groups, repeats[0])
        self.stage3 = stage(widths[0], widths[1], groups, repeats[1])
        self.stage4 = stage(widths[1], widths[2], groups, repeats[2])
        self.conv5 = torch.nn.Conv2d(widths[2], last_width, kernel_size=1, bias=False)
        self.bn5 = norm(last_width)
        self.fc = torch.nn.Linear(last_width, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
                if layer.weight.shape[1] > 1:
                    layer.weight.data -= layer.weight.data.mean(dim=1, keepdim=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.max_pool2d(x, kernel_size=3, stride=2, padding=1)
        x = self.stage4(self.stage3(self.stage2(x)))
        x = torch.relu(self.bn5(self.conv5(x)))
        return self.fc(x.mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    repeats, widths = ([p[f"{name}{stage}"] for stage in (2, 3, 4)] for name in ("repeats", "width"))
    return [p["num_classes"], p["groups"], repeats, p["width"], widths, p["last_width"]]
