"""Linear layer with a huge weight, bounded from above by a learned scalar, which is then subtracted."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 128, "in_features": 8192, "out_features": 8192},
    "full": {"batch_size": 128, "in_features": 16384, "out_features": 16384},
    "v0": {"batch_size": 128, "in_features": 10, "out_features": 5},
}
TAGS = ("matmul",)
MENDS = (
    "KernelBench's constant of 2.0 lies six standard deviations above the products, so that the minimum never "
    "acts; here it is drawn about 0.25."
)


class Model(torch.nn.Module):
    """min(x W^T + b, constant) - constant."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)
        self.constant = torch.nn.Parameter(0.25 + 0.05 * torch.randn(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        return torch.minimum(self.linear(x), self.constant) - self.constant


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
