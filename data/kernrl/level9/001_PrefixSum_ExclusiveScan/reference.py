"""Exclusive prefix sums along long rows."""

import torch

SIZES = {
    "small": {"rows": 5, "length": 5003},
    "medium": {"rows": 16, "length": 1048576},
    "full": {"rows": 64, "length": 1048576},
}
PRECISIONS = ("fp32",)
TAGS = ("scan",)
OP_FAMILY = "scan"
MENDS = (
    "kernrl's values lie in [0, 1), so that a ramp of slope 1/2 passes. Here they have no mean, and rows bound what a"
    " sum loses."
)


class Model(torch.nn.Module):
    """Sum of all elements before each one; the first is 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, length) -> (rows, length)."""
        return torch.nn.functional.pad(x.cumsum(1)[:, :-1], (1, 0))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["rows"], p["length"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
