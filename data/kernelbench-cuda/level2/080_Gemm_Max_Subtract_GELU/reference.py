"""Each row's maximum of a linear layer, centred over the batch, through GELU."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 512, "out_features": 1024},
}
TAGS = ("matmul", "reduction")
MENDS = (
    "KernelBench subtracts from each maximum its mean over an axis of one element, so that the output is zero; "
    "here the mean goes over the batch, and each row of normal inputs has a scale of its own."
)


class Model(torch.nn.Module):
    """gelu(m - mean(m)) with m = max(x W^T + b) over the features; the mean goes over the batch."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        m = torch.amax(self.gemm(x), dim=1, keepdim=True)
        return torch.nn.functional.gelu(m - m.mean(dim=0, keepdim=True))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"]) * 8.0 * torch.rand(p["batch_size"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
