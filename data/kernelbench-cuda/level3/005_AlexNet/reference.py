"""AlexNet: large filters with strides first, three linear layers last, over a large batch."""

import torch

SIZES = {
    "small": {"batch_size": 2, "image": 63, "width": 1, "hidden": 29, "num_classes": 13},
    "medium": {"batch_size": 64, "image": 224, "width": 16, "hidden": 4096, "num_classes": 1000},
    "full": {"batch_size": 1024, "image": 224, "width": 16, "hidden": 4096, "num_classes": 1000},
    "v0": {"batch_size": 10, "image": 224, "width": 16, "hidden": 4096, "num_classes": 1000},
}
TAGS = ("conv", "pool", "matmul", "network")
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


class Model(torch.nn.Module):
    """Five convolutions and three poolings, then three linear layers, with rectifiers; dropout is left out.

    Layers have multiples of `width` channels, 16 in AlexNet.
    """

    def __init__(self, num_classes: int, image: int, width: int, hidden: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 6 * width, kernel_size=11, stride=4, padding=2)
        self.conv2 = torch.nn.Conv2d(6 * width, 16 * width, kernel_size=5, padding=2)
        self.conv3 = torch.nn.Conv2d(16 * width, 24 * width, kernel_size=3, padding=1)
        self.conv4 = torch.nn.Conv2d(24 * width, 24 * width, kernel_size=3, padding=1)
        self.conv5 = torch.nn.Conv2d(24 * width, 16 * width, kernel_size=3, padding=1)
        extent = (image - 7) // 4 + 1
        for _ in range(3):
            extent = (extent - 3) // 2 + 1
        if extent < 1:
            raise ValueError(f"an image of {image} x {image} is too small")
        self.fc1 = torch.nn.Linear(16 * width * extent**2, hidden)
        self.fc2 = torch.nn.Linear(hidden, hidden)
        self.fc3 = torch.nn.Linear(hidden, num_classes)
        scaled(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image, image) -> (batch_size, num_classes)."""
        x = torch.max_pool2d(torch.relu(self.conv1(x)), kernel_size=3, stride=2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), kernel_size=3, stride=2)
        x = torch.relu(self.conv4(torch.relu(self.conv3(x))))
        x = torch.max_pool2d(torch.relu(self.conv5(x)), kernel_size=3, stride=2)
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["image"], p["width"], p["hidden"]]
