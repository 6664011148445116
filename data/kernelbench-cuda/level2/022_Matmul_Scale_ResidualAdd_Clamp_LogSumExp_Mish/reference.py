"""Linear layer, scaled, doubled and clamped; its log-sum-exp over the features through Mish."""

import torch

SIZES = {
    "small": {"batch_size": 131, "in_features": 67, "out_features": 101},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192},
    "v0": {"batch_size": 128, "in_features": 512, "out_features": 1024},
}
SCALARS = {"scale": 2.0, "clamp_min": -10.0, "clamp_max": 10.0}
TAGS = ("matmul", "softmax")
MENDS = (
    "KernelBench's inputs from [0, 1) give values that never reach the clamp at 10, and a log-sum-exp that is the "
    "same for all rows to 0.2 %; here inputs are normal, each row has a scale of its own, and biases lie about -3, so "
    "that some rows reach the clamp at -10 and Mish what it bends."
)


class Model(torch.nn.Module):
    """z * mish(z) with z = logsumexp(clamp(2 * scale * (x W^T + b))) over the features."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        torch.nn.init.normal_(self.matmul.bias, mean=-3.0, std=0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, 1)."""
        y = self.matmul(x) * SCALARS["scale"]
        y = torch.clamp(y + y, SCALARS["clamp_min"], SCALARS["clamp_max"])
        z = torch.logsumexp(y, dim=1, keepdim=True)
        return z * torch.nn.functional.mish(z)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_features"]) * 4.0 * torch.rand(p["batch_size"], 1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"]]
