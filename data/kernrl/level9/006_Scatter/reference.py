"""Values put in the order that a permutation gives."""

import torch

SIZES = {"small": {"count": 5011}, "medium": {"count": 1048576}, "full": {"count": 33554432}}
TAGS = ("gather",)
OP_FAMILY = "gather"
MENDS = "kernrl's indices repeat, and which value then stays is undefined. Here they are a permutation, of 32 bits."


class Model(torch.nn.Module):
    """output[places[i]] = values[i]."""

    def forward(self, values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """(count,) and (count,) -> (count,)."""
        return torch.empty_like(values).index_copy(0, places.long(), values)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    count = SIZES[size]["count"]
    return [torch.randn(count), torch.randperm(count).int()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
