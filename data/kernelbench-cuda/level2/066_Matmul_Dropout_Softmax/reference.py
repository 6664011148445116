"""Linear layer with a huge weight, then softmax over its features; dropout is off."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 128, "in_features": 8192, "out_features": 8192},
    "full": {"batch_size": 128, "in_features": 16384, "out_features": 16384},
}
TAGS = ("matmul", "softmax")
MENDS = (
    "KernelBench's logits have a standard deviation of 0.3, so that all probabilities are about 1 / 16384, fp16's "
    "smallest normal number; here inputs are normal, of standard deviation 8."
)


class Model(torch.nn.Module):
    """softmax(x W^T + b) over the features."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.softmax(self.matmul(x), dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
