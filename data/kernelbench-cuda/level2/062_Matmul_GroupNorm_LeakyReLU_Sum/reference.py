"""Linear layer, group norm of small groups, leaky rectifier, doubled."""

import torch

SIZES = {
    "small": {"batch_size": 37, "in_features": 131, "out_features": 210, "num_groups": 7},
    "medium": {"batch_size": 1024, "in_features": 4096, "out_features": 4096, "num_groups": 512},
    "full": {"batch_size": 1024, "in_features": 8192, "out_features": 8192, "num_groups": 512},
    "v0": {"batch_size": 128, "in_features": 512, "out_features": 256, "num_groups": 8},
}
SCALARS = {"eps": 1e-5, "negative_slope": 0.01}
TAGS = ("matmul", "norm")


class Model(torch.nn.Module):
    """2 * leaky_relu(group_norm(x W^T + b))."""

    def __init__(self, in_features: int, out_features: int, num_groups: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(in_features, out_features)
        self.gn = torch.nn.GroupNorm(num_groups, out_features, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.gn.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.gn.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_features) -> (batch_size, out_features)."""
        y = torch.nn.functional.leaky_relu(self.gn(self.fc(x)), SCALARS["negative_slope"])
        return y + y


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_features"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_features"], p["out_features"], p["num_groups"]]
