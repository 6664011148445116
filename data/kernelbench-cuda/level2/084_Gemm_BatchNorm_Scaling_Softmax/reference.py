"""Linear layer, batch norm with running statistics, a learned scale, softmax over the features."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
SCALARS = {"eps": 1e-5}
TAGS = ("matmul", "norm", "softmax")
MENDS = (
    "KernelBench normalises with the statistics of the batch, which cancel the bias; here running statistics are "
    "given. Inputs are normal, of standard deviation 8, so that logits spread without the statistics of the "
    "batch."
)


class Model(torch.nn.Module):
    """softmax(scale * batch_norm(x W^T + b)), with the running statistics of a trained layer."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.scale = torch.nn.Parameter(1.0 + 0.2 * torch.randn(1))
        self.bn = torch.nn.BatchNorm1d(out_features, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.bn.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.bn.bias, std=0.2)
        torch.nn.init.normal_(self.bn.running_mean, std=0.2)
        torch.nn.init.uniform_(self.bn.running_var, 0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.softmax(self.scale * self.bn(self.gemm(x)), dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
