"""Linear layer with a huge weight; maxima of neighbouring features are summed and scaled."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101, "kernel_size": 2},
    "medium": {"batch_size": 128, "in_features": 8192, "out_features": 8192, "kernel_size": 2},
    "full": {"batch_size": 128, "in_features": 32768, "out_features": 32768, "kernel_size": 2},
    "v0": {"batch_size": 128, "in_features": 10, "out_features": 5, "kernel_size": 2},
}
SCALARS = {"scale_factor": 0.5}
TAGS = ("matmul", "pool", "reduction")
MENDS = (
    "KernelBench's sum over 16384 maxima is the same for all rows to 1 %; here inputs are normal and each row has "
    "a scale of its own."
)


class Model(torch.nn.Module):
    """scale_factor * sum(maxima of windows of x W^T + b)."""

    def __init__(self, in_features: int, out_features: int, kernel_size: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.max_pool = torch.nn.MaxPool1d(kernel_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size,)."""
        y = self.max_pool(self.matmul(x).unsqueeze(1)).squeeze(1)
        return torch.sum(y, dim=1) * SCALARS["scale_factor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"]) * 8.0 * torch.rand(p["batch_size"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], p["kernel_size"]]
