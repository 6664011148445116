"""A dense block of DenseNet: each layer sees the block's input and what all layers before it have added."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "num_layers": 6,
        "num_input_features": 5,
        "growth_rate": 7,
        "height": 11,
        "width": 13,
    },
    "medium": {
        "batch_size": 10,
        "num_layers": 6,
        "num_input_features": 32,
        "growth_rate": 32,
        "height": 112,
        "width": 112,
    },
    "full": {
        "batch_size": 10,
        "num_layers": 6,
        "num_input_features": 32,
        "growth_rate": 32,
        "height": 224,
        "width": 224,
    },
}
TAGS = ("conv", "norm", "network")


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Model(torch.nn.Module):
    """Layers of batch normalisation, rectifier and 3x3 convolution, whose results stand side by side.

    KernelBench's dropout layers have probability 0 and are left out.
    """

    def __init__(self, num_layers: int, num_input_features: int, growth_rate: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for layer in range(num_layers):
            seen = num_input_features + layer * growth_rate
            conv = torch.nn.Conv2d(seen, growth_rate, kernel_size=3, padding=1, bias=False)
            self.layers.append(torch.nn.Sequential(norm(seen), torch.nn.ReLU(), conv))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, num_input_features, height, width) -> the same with num_layers * growth_rate more channels."""
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return x


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["num_input_features"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_layers"], p["num_input_features"], p["growth_rate"]]
