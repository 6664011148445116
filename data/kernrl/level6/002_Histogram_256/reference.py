"""How often each byte occurs."""

import torch

SIZES = {"small": {"count": 100003}, "medium": {"count": 4194304}, "full": {"count": 268435456}}
PRECISIONS = ("fp32",)
RANGES = {"data": (0, 255)}
TAGS = ("histogram",)
OP_FAMILY = "reduction"
MENDS = (
    "kernrl's pixels have 64 bits, and counts may be off by 335. Here pixels are bytes, skewed ones among them, and "
    "counts are exact."
)


class Model(torch.nn.Module):
    """Counts of the values 0 to 255."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """(count,) bytes -> (256,)."""
        counts = torch.zeros(256, dtype=torch.int32, device=data.device)
        return counts.index_add(0, data.int(), torch.ones_like(data, dtype=torch.int32))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size: values near the middle are the most frequent."""
    count = SIZES[size]["count"]
    halves = [torch.randint(0, 128, (count,)) for _ in range(2)]
    return [(halves[0] + halves[1]).to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
