"""Linear layer with a second bias, clamped, through Mish, group norm."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 210, "num_groups": 7},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096, "num_groups": 256},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192, "num_groups": 256},
    "v0": {"batch_size": 128, "in_features": 512, "out_features": 1024, "num_groups": 32},
}
SCALARS = {"eps": 1e-5}
TAGS = ("matmul", "norm")


class Model(torch.nn.Module):
    """group_norm(mish(hardtanh(x W^T + b + bias)))."""

    def __init__(self, in_features: int, out_features: int, num_groups: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.bias = torch.nn.Parameter(torch.randn(out_features))
        self.groupnorm = torch.nn.GroupNorm(num_groups, out_features, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.groupnorm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.groupnorm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        y = torch.nn.functional.hardtanh(self.gemm(x) + self.bias)
        return self.groupnorm(torch.nn.functional.mish(y))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], p["num_groups"]]
