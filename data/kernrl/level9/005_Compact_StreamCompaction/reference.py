"""Values at or above a threshold, in their order, and how many there are."""

import torch

SIZES = {"small": {"count": 5009}, "medium": {"count": 1048576}, "full": {"count": 67108864}}
SCALARS = {"threshold": 0.5}
PRECISIONS = ("fp32",)
OUTPUTS = ("kept", "kept_count")
DTYPES = {"kept_count": "int32"}
TAGS = ("sort", "scan")
OP_FAMILY = "sort"
MENDS = (
    "kernrl's result has a length that depends on the values, which waits for the GPU. Here it has the input's, with "
    "-1 behind the values that are kept."
)


class Model(torch.nn.Module):
    """x[x >= threshold], filled up with -1, and its length."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(count,) -> (count,) and (1,)."""
        keep = x >= SCALARS["threshold"]
        place = torch.where(keep, keep.long().cumsum(0) - 1, x.numel())
        kept = torch.full((x.numel() + 1,), -1.0, dtype=x.dtype, device=x.device).scatter(0, place, x)
        return kept[:-1], keep.sum().reshape(1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    return [torch.randn(SIZES[size]["count"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
