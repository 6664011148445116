"""VGG-19: 16 convolutions of 3x3 in five stages, then three wide linear layers."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 35, "width": 2, "hidden": 29, "num_classes": 13},
    "medium": {"batch_size": 10, "image": 224, "width": 64, "hidden": 4096, "num_classes": 1000},
    "full": {"batch_size": 10, "image": 224, "width": 64, "hidden": 4096, "num_classes": 1000},
}
TAGS = ("conv", "pool", "matmul", "network")
MENDS = (
    "KernelBench's default weights shrink what passes through from layer to layer, so that biases decide the output. "
    "Here weights keep its size, and inputs are normal."
)


DEPTHS = (2, 2, 4, 4, 4)


def scaled(model: torch.nn.Module) -> None:
    """Draws weights so large that what passes through rectifiers keeps its size."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.normal_(layer.bias, std=0.2)


class Model(torch.nn.Module):
    """Stages of convolutions of 3x3 and a pooling each, then linear layers, with rectifiers; dropout is left out.

    The first stage has `width` channels, 64 in VGG, and each further one twice as many, at most 8 * width.
    """

    def __init__(self, num_classes: int, image: int, width: int, hidden: int) -> None:
        super().__init__()
        if image < 32:
            raise ValueError(f"an image of {image} x {image} is too small")
        layers: list[torch.nn.Module] = []
        before = 3
        for stage, depth in enumerate(DEPTHS):
            channels = width * min(2**stage, 8)
            for _ in range(depth):
                layers += [torch.nn.Conv2d(before, channels, kernel_size=3, padding=1), torch.nn.ReLU()]
                before = channels
            layers.append(torch.nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = torch.nn.Sequential(*layers)
        self.classifier = torch.nn.Sequential(
            torch.nn.Linear(before * (image // 32) ** 2, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, num_classes),
        )
        scaled(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        return self.classifier(self.features(x).flatten(1))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["image"], p["width"], p["hidden"]]
