"""Values of a table at given indices."""

import torch

SIZES = {
    "small": {"table_size": 1009, "count": 5021},
    "medium": {"table_size": 262144, "count": 1048576},
    "full": {"table_size": 4194304, "count": 67108864},
}
PARTLY_READ = ("table",)
TAGS = ("gather",)
OP_FAMILY = "gather"
MENDS = "kernrl's indices have 64 bits. Here they have 32, and the table is beyond the L1."


class Model(torch.nn.Module):
    """table[indices]."""

    def forward(self, table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """(table_size,) and (count,) -> (count,)."""
        return table[indices.long()]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["table_size"]), torch.randint(0, p["table_size"], (p["count"],)).int()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
