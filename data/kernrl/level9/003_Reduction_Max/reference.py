"""Largest value of each long row, and where it is."""

import torch

SIZES = {
    "small": {"rows": 41, "length": 4111},
    "medium": {"rows": 1024, "length": 65536},
    "full": {"rows": 4096, "length": 65536},
}
OUTPUTS = ("values", "indices")
DTYPES = {"indices": "int32"}
INDICES = {"indices": ("x", 1)}
TAGS = ("reduction",)
OP_FAMILY = "reduction"
MENDS = (
    "kernrl's maximum of 64 million values from [0, 1) is 1.0 whatever they are. Here rows of normal values are "
    "reduced, and the place is asked for as well."
)


class Model(torch.nn.Module):
    """Maximum along the rows and its index."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(rows, length) -> (rows,) and (rows,)."""
        values, indices = x.max(1)
        return values, indices


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["rows"], p["length"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
