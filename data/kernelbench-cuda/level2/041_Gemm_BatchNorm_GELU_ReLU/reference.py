"""Linear layer of many rows, batch norm, GELU and a rectifier."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 4096, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 16384, "in_features": 4096, "out_features": 4096},
}
SCALARS = {"eps": 1e-5}
TAGS = ("matmul", "norm")
MENDS = "KernelBench's linear layer has a bias, which the statistics of the batch cancel; here it has none."


class Model(torch.nn.Module):
    """relu(gelu(batch_norm(x W^T))), with the statistics of the batch."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features, bias=False)
        self.batch_norm = torch.nn.BatchNorm1d(out_features, eps=SCALARS["eps"], track_running_stats=False)
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.batch_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.relu(torch.nn.functional.gelu(self.batch_norm(self.gemm(x))))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
