"""Least difference of each block of a frame to any nearby block of another."""

import torch

SIZES = {
    "small": {"block_rows": 5, "block_columns": 7, "block": 9, "range": 4},
    "medium": {"block_rows": 45, "block_columns": 80, "block": 16, "range": 16},
    "full": {"block_rows": 135, "block_columns": 240, "block": 16, "range": 16},
}
PRECISIONS = ("fp32",)
RANGES = {"frame": (0, 255), "other": (0, 255)}
TAGS = ("pairwise", "stencil")
OP_FAMILY = "pairwise"
MENDS = (
    "kernrl asks for displacements, of which several may be equally good, as three tensors, from a reference of "
    "Python loops. Here it is the least sum of differences itself, of bytes, exact."
)


class Model(torch.nn.Module):
    """Per block: min over displacements up to `range` in both directions of sum |frame - other, displaced|."""

    def __init__(self, block: int, range_: int) -> None:
        super().__init__()
        self.block, self.range = block, range_

    def forward(self, frame: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Twice (block_rows block, block_columns block) bytes -> (block_rows, block_columns); borders go on outside."""
        here, there = frame.int(), other.int()
        height, width = here.shape
        rows, columns = (torch.arange(n, device=here.device) for n in (height, width))
        least = None
        for down in range(-self.range, self.range + 1):
            moved = there[(rows + down).clamp(0, height - 1)]
            for over in range(-self.range, self.range + 1):
                apart = (here - moved[:, (columns + over).clamp(0, width - 1)]).abs()
                tiles = apart.reshape(height // self.block, self.block, width // self.block, self.block)
                sums = tiles.sum((1, 3), dtype=torch.int32)
                least = sums if least is None else torch.minimum(least, sums)
        return least


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["block_rows"] * p["block"], p["block_columns"] * p["block"])
    return [torch.randint(0, 256, shape).to(torch.uint8) for _ in range(2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["block"], SIZES[size]["range"]]
