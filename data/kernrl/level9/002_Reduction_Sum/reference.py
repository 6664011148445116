"""Sums of long rows."""

import torch

SIZES = {
    "small": {"rows": 37, "length": 4099},
    "medium": {"rows": 1024, "length": 65536},
    "full": {"rows": 4096, "length": 65536},
}
TAGS = ("reduction",)
OP_FAMILY = "reduction"
MENDS = (
    "kernrl sums 64 million values from [0, 1) to one number that is half of that whatever they are. Here each row "
    "has a sum of its own, around 0."
)


class Model(torch.nn.Module):
    """Sum along the rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, length) -> (rows,)."""
        return x.sum(1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["rows"], p["length"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
