"""A plain convolutional network in stages, each two normalised convolutions and a pooling."""

import torch

SIZES = {
    "small": {"batch_size": 3, "image": 19, "width1": 3, "width2": 5, "width3": 7, "num_classes": 13},
    "medium": {"batch_size": 8, "image": 224, "width1": 64, "width2": 128, "width3": 256, "num_classes": 10},
    "full": {"batch_size": 8, "image": 224, "width1": 64, "width2": 128, "width3": 256, "num_classes": 10},
}
TAGS = ("conv", "norm", "pool", "network")
MENDS = (
    "KernelBench's convolutions have biases, which the normalisation with the statistics of the batch takes away "
    "again. Here they have none."
)


def norm(channels: int) -> torch.nn.BatchNorm2d:
    """Batch normalisation with the statistics of the batch, its scale and shift drawn."""
    layer = torch.nn.BatchNorm2d(channels, track_running_stats=False)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Model(torch.nn.Module):
    """Stages of two convolutions, each normalised and rectified, and a pooling; mean of each plane, linear layer."""

    def __init__(self, block_widths: list[int], num_classes: int) -> None:
        super().__init__()
        stages = []
        before = 3
        for width in block_widths:
            stages.append(
                torch.nn.Sequential(
                    torch.nn.Conv2d(before, width, kernel_size=3, padding=1, bias=False),
                    norm(width),
                    torch.nn.ReLU(),
                    torch.nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False),
                    norm(width),
                    torch.nn.ReLU(),
                    torch.nn.MaxPool2d(kernel_size=2, stride=2),
                )
            )
            before = width
        self.feature_extractor = torch.nn.Sequential(*stages)
        self.fc = torch.nn.Linear(before, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        return self.fc(self.feature_extractor(x).mean(dim=(2, 3)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [[p[f"width{stage}"] for stage in (1, 2, 3)], p["num_classes"]]
