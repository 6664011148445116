"""Linear layer; means of neighbouring features through GELU, scaled, and each row's maximum of them."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101, "pool_size": 5},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096, "pool_size": 16},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192, "pool_size": 16},
    "v0": {"batch_size": 128, "in_features": 512, "out_features": 256, "pool_size": 4},
}
SCALARS = {"scale_factor": 2.0}
TAGS = ("matmul", "pool", "reduction")


class Model(torch.nn.Module):
    """max(scale_factor * gelu(means of windows of x W^T + b)) over the windows."""

    def __init__(self, in_features: int, out_features: int, pool_size: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.avg_pool = torch.nn.AvgPool1d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size,)."""
        y = self.avg_pool(self.matmul(x).unsqueeze(1)).squeeze(1)
        return torch.amax(torch.nn.functional.gelu(y) * SCALARS["scale_factor"], dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [4.0 * torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], p["pool_size"]]
