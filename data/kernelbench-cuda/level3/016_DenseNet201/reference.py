"""DenseNet-201 without bottlenecks: each layer of a block sees all layers before it."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "image": 37,
        "width": 6,
        "growth_rate": 7,
        "layers1": 2,
        "layers2": 3,
        "layers3": 2,
        "layers4": 2,
        "num_classes": 13,
    },
    "medium": {
        "batch_size": 10,
        "image": 224,
        "width": 64,
        "growth_rate": 32,
        "layers1": 6,
        "layers2": 12,
        "layers3": 48,
        "layers4": 32,
        "num_classes": 10,
    },
    "full": {
        "batch_size": 10,
        "image": 224,
        "width": 64,
        "growth_rate": 32,
        "layers1": 6,
        "layers2": 12,
        "layers3": 48,
        "layers4": 32,
        "num_classes": 10,
    },
}
TAGS = ("conv", "norm", "pool", "network")
MENDS = (
    "With the statistics of a batch, as KernelBench's evaluation has it, the scale of the first normalisation does "
    "next to nothing, for later ones take it away. Here statistics are given."
)


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with running statistics; these, scale and shift are drawn."""
    layer = torch.nn.BatchNorm2d(channels)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    torch.nn.init.normal_(layer.running_mean, std=0.2)
    torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
    return layer


class Block(torch.nn.Module):
    """Layers of batch normalisation, rectifier and 3x3 convolution, whose results stand side by side."""

    def __init__(self, channels: int, layers: int, growth_rate: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for layer in range(layers):
            seen = channels + layer * growth_rate
            conv = torch.nn.Conv2d(seen, growth_rate, kernel_size=3, padding=1, bias=False)
            self.layers.append(torch.nn.Sequential(norm(seen), torch.nn.ReLU(), conv))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


class Model(torch.nn.Module):
    """A strided convolution and pooling, four dense blocks with transitions between them, average, linear layer.

    A transition halves channels and extents. Normalisations use running statistics, which are drawn, and weights keep
    the size of what passes through. KernelBench's dropout layers have probability 0 and are left out.
    """

    def __init__(self, layers: list[int], growth_rate: int, num_classes: int, width: int) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False),
            norm(width),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
        )
        self.dense_blocks = torch.nn.ModuleList()
        self.transition_layers = torch.nn.ModuleList()
        channels = width
        for block, count in enumerate(layers):
            self.dense_blocks.append(Block(channels, count, growth_rate))
            channels += count * growth_rate
            if block + 1 < len(layers):
                conv = torch.nn.Conv2d(channels, channels // 2, kernel_size=1, bias=False)
                pool = torch.nn.AvgPool2d(kernel_size=2, stride=2)
                self.transition_layers.append(torch.nn.Sequential(norm(channels), torch.nn.ReLU(), conv, pool))
                channels //= 2
        self.final_bn = norm(channels)
        self.classifier = torch.nn.Linear(channels, num_classes)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = self.dense_blocks[0](self.features(x))
        for transition, block in zip(self.transition_layers, self.dense_blocks[1:], strict=True):
            x = block(transition(x))
        return self.classifier(torch.relu(self.final_bn(x)).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [[p[f"layers{block}"] for block in (1, 2, 3, 4)], p["growth_rate"], p["num_classes"], p["width"]]
