"""Linear layer with a huge weight, through the sigmoid, summed over its features."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101},
    "medium": {"batch_size": 128, "in_features": 8192, "out_features": 8192},
    "full": {"batch_size": 128, "in_features": 32768, "out_features": 32768},
    "v0": {"batch_size": 128, "in_features": 10, "out_features": 20},
}
TAGS = ("matmul", "reduction")
MENDS = (
    "KernelBench's sum over 32768 sigmoids is the same for all rows to 0.1 %; here inputs are normal, each row "
    "has a scale of its own, and biases lie about -2, so that the sum grows with the scale."
)


class Model(torch.nn.Module):
    """sum(sigmoid(x W^T + b)) over the features."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)
        torch.nn.init.normal_(self.linear.bias, mean=-2.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        return torch.sum(torch.sigmoid(self.linear(x)), dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"]) * 8.0 * torch.rand(p["batch_size"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
