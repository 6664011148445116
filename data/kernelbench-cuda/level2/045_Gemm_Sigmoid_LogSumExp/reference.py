"""Two linear layers with a sigmoid between them, and the log-sum-exp of each row."""

import math

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 37, "hidden": 53, "out_features": 41},
    "medium": {"batch_size": 4096, "in_features": 2048, "hidden": 4096, "out_features": 1024},
    "full": {"batch_size": 16384, "in_features": 2048, "hidden": 4096, "out_features": 1024},
}
TAGS = ("matmul", "softmax")
MENDS = (
    "KernelBench's log-sum-exp over 1024 small values is the same for all rows to 0.1 %; here inputs are normal "
    "and the weights of the second layer are wide, of standard deviation 8 / sqrt(hidden), so that rows differ."
)


class Model(torch.nn.Module):
    """logsumexp(sigmoid(x V^T + a) W^T + b) over the features."""

    def __init__(self, in_features: int, hidden: int, out_features: int) -> None:
        super().__init__()
        self.linear1 = torch.nn.Linear(in_features, hidden)
        self.linear2 = torch.nn.Linear(hidden, out_features)
        torch.nn.init.normal_(self.linear2.weight, std=8.0 / math.sqrt(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size,)."""
        y = self.linear2(torch.sigmoid(self.linear1(x)))
        return torch.logsumexp(y, dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [2.0 * torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["hidden"], p["out_features"]]
