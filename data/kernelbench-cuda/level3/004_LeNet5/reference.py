"""LeNet-5: two small convolutions with pooling, then three linear layers, over a large batch."""

import torch

SIZES = {
    "small": {"batch_size": 5, "image": 20, "num_classes": 13},
    "medium": {"batch_size": 4096, "image": 32, "num_classes": 20},
    "full": {"batch_size": 4096, "image": 32, "num_classes": 20},
    "v0": {"batch_size": 1, "image": 32, "num_classes": 10},
}
TAGS = ("conv", "pool", "matmul", "network")
MENDS = (
    "KernelBench draws from [0, 1), and its default weights leave outputs that are nearly their biases. Here inputs "
    "are normal, and weights keep the size of what passes through."
)


class Model(torch.nn.Module):
    """Convolution, rectifier and pooling twice, then linear layers with rectifiers between them."""

    def __init__(self, num_classes: int, image: int) -> None:
        super().__init__()
        extent = ((image - 4) // 2 - 4) // 2
        self.conv1 = torch.nn.Conv2d(1, 6, kernel_size=5)
        self.conv2 = torch.nn.Conv2d(6, 16, kernel_size=5)
        self.fc1 = torch.nn.Linear(16 * extent * extent, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, num_classes)
        for layer in self.children():
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 1, image, image) -> (batch_size, num_classes)."""
        x = torch.max_pool2d(torch.relu(self.conv1(x)), kernel_size=2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), kernel_size=2)
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc3(torch.relu(self.fc2(x)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 1, p["image"], p["image"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["num_classes"], p["image"]]
