"""Log-sum-exp of a linear layer's rows, twice through a leaky rectifier and twice through GELU."""

import math

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"negative_slope": 0.01}
TAGS = ("matmul", "softmax")
MENDS = (
    "KernelBench's log-sum-exp is 9 for all rows to 0.1 %, where rectifiers and GELU change nothing; here inputs "
    "are normal, each row has a scale of its own, and biases lie about -1 - log(out_features), so that results "
    "lie on both sides of zero."
)


class Model(torch.nn.Module):
    """gelu(gelu(leaky_relu(leaky_relu(logsumexp(x W^T + b))))) over the features."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)
        torch.nn.init.normal_(self.linear.bias, mean=-1.0 - math.log(out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        z = torch.logsumexp(self.linear(x), dim=1, keepdim=True)
        z = torch.nn.functional.leaky_relu(z, SCALARS["negative_slope"])
        z = torch.nn.functional.leaky_relu(z, SCALARS["negative_slope"])
        return torch.nn.functional.gelu(torch.nn.functional.gelu(z))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"]) * 8.0 * torch.rand(p["batch_size"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
