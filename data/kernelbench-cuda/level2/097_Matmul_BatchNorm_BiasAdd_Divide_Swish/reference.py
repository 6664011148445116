"""Linear layer, batch norm with running statistics, one bias for all features, divided, through swish."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"eps": 1e-5, "divisor": 2.0}
TAGS = ("matmul", "norm")
MENDS = (
    "KernelBench normalises with the statistics of the batch, which cancel the linear layer's bias, and divides "
    "by 1; here running statistics are given and the divisor is 2."
)


class Model(torch.nn.Module):
    """swish((batch_norm(x W^T + b) + bias) / divisor), with the running statistics of a trained layer."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.bn = torch.nn.BatchNorm1d(out_features, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.bn.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.bn.bias, std=0.2)
        torch.nn.init.normal_(self.bn.running_mean, std=0.2)
        torch.nn.init.uniform_(self.bn.running_var, 0.5, 1.5)
        self.bias = torch.nn.Parameter(torch.randn(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.nn.functional.silu((self.bn(self.matmul(x)) + self.bias) / SCALARS["divisor"])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
