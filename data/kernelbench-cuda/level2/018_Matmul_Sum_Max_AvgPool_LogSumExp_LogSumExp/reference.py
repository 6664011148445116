"""Linear layer whose features are a tree of five levels, each reduced in another way."""

import torch

SIZES = {
    "small": {
        "batch_size": 131,
        "in_features": 67,
        "branches": 3,
        "parts": 3,
        "averaged": 3,
        "compared": 2,
        "summed": 3,
    },
    "medium": {
        "batch_size": 1024,
        "in_features": 4096,
        "branches": 8,
        "parts": 8,
        "averaged": 8,
        "compared": 4,
        "summed": 4,
    },
    "full": {
        "batch_size": 1024,
        "in_features": 8192,
        "branches": 8,
        "parts": 8,
        "averaged": 8,
        "compared": 4,
        "summed": 4,
    },
    "v0": {"batch_size": 128, "in_features": 10, "branches": 2, "parts": 2, "averaged": 2, "compared": 2, "summed": 2},
}
TAGS = ("matmul", "reduction", "softmax")
MENDS = (
    "KernelBench sums all features first, so that maximum, mean and both log-sum-exps go over one element; here "
    "each reduces an axis of its own, and inputs are normal, of standard deviation 8, so that rows differ."
)


class Model(torch.nn.Module):
    """Sum, maximum, mean and two log-sum-exps, innermost first, over (branches, parts, averaged, compared, summed)."""

    def __init__(self, in_features: int, branches: int, parts: int, averaged: int, compared: int, summed: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, branches * parts * averaged * compared * summed)
        self.branches, self.parts, self.averaged = branches, parts, averaged
        self.compared, self.summed = compared, summed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        shape = (-1, self.branches, self.parts, self.averaged, self.compared, self.summed)
        y = self.linear(x).reshape(shape).sum(dim=5).amax(dim=4).mean(dim=3)
        return torch.logsumexp(torch.logsumexp(y, dim=2), dim=1, keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["branches"], p["parts"], p["averaged"], p["compared"], p["summed"]]
