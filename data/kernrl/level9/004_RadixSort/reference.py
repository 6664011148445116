"""Integers in ascending order."""

import torch

SIZES = {"small": {"count": 5003}, "medium": {"count": 1048576}, "full": {"count": 16777216}}
PRECISIONS = ("fp32",)
RANGES = {"keys": (-2147483648, 2147483647)}
TAGS = ("sort",)
OP_FAMILY = "sort"
MENDS = (
    "kernrl compares sorted keys within 2 %, so that a ramp passes, and spends 64 bits on keys of 31. Here keys are "
    "of 32 bits with sign, equal ones and skewed ones among them, and the order must be exact."
)


class Model(torch.nn.Module):
    """Keys in ascending order."""

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        """(count,) -> (count,)."""
        return keys.sort().values


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    return [torch.randint(-(2**31), 2**31, (SIZES[size]["count"],)).int()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
