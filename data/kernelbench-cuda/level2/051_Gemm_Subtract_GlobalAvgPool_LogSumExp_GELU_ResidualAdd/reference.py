"""Linear layer minus a vector, averaged over windows; the GELU of their log-sum-exp is added to every input."""

import math

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203, "window": 7},
    "medium": {"batch_size": 2048, "in_features": 4096, "out_features": 4096, "window": 16},
    "full": {"batch_size": 2048, "in_features": 8192, "out_features": 8192, "window": 16},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512, "window": 8},
}
TAGS = ("matmul", "reduction", "softmax")
MENDS = (
    "KernelBench averages all features, so that log-sum-exp goes over one element and nearly nothing is added to "
    "the input; here windows are averaged, weights have the standard deviation 16 / sqrt(in_features) and the "
    "subtrahend 8 around 14, so that the added value matters and lies where GELU does something."
)


class Model(torch.nn.Module):
    """x + gelu(logsumexp(means of windows of x W^T + b - subtract))."""

    def __init__(self, in_features: int, out_features: int, window: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        torch.nn.init.normal_(self.gemm.weight, std=16.0 / math.sqrt(in_features))
        torch.nn.init.normal_(self.gemm.bias, std=4.0)
        self.subtract = torch.nn.Parameter(14.0 + 8.0 * torch.randn(out_features))
        self.window = window

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, in_features)."""
        y = (self.gemm(x) - self.subtract).unflatten(1, (-1, self.window)).mean(dim=2)
        return x + torch.nn.functional.gelu(torch.logsumexp(y, dim=1, keepdim=True))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], p["window"]]
