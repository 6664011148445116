"""Linear layer through swish, halved, clamped, through tanh, clamped again."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 203},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 1024, "out_features": 512},
}
TAGS = ("matmul",)
MENDS = (
    "KernelBench clamps values about 0.1 to [-1, 1] and their tanh to [-1, 1], so that neither acts; here inputs "
    "are normal, of standard deviation 8, the first clamp begins at -0.1, and the second ends at 0.5."
)


class Model(torch.nn.Module):
    """clamp(tanh(clamp(swish(x W^T + b) / 2, -0.1, 1)), -1, 0.5)."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        y = torch.clamp(torch.nn.functional.silu(self.gemm(x)) / 2.0, min=-0.1, max=1.0)
        return torch.clamp(torch.tanh(y), min=-1.0, max=0.5)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [8.0 * torch.randn(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
