"""Distance of points to the nearest box among the leaves of a tree of boxes."""

import torch

SIZES = {
    "small": {"queries": 1013, "depth": 6},
    "medium": {"queries": 65536, "depth": 10},
    "full": {"queries": 524288, "depth": 13},
}
PRECISIONS = ("fp32",)
KEPT = ("boxes",)
PARTLY_READ = ("boxes",)
TAGS = ("traversal",)
OP_FAMILY = "gather"
MENDS = (
    "kernrl's rays miss every box of a tree whose children do not lie in their parents, and a ray that grazes a box "
    "hits it or not by one rounding. Here boxes are nested, and the result, the distance to the nearest leaf, is "
    "continuous."
)
_ROWS = 4096


class Model(torch.nn.Module):
    """Distance to the nearest leaf. The children of box i are 2 i + 1 and 2 i + 2, which it encloses."""

    def forward(self, points: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        """(queries, 3) and (2^(depth + 1) - 1, 6): least, then largest corner -> (queries,)."""
        leaves = boxes[boxes.shape[0] // 2 :]
        low, high = leaves[:, :3], leaves[:, 3:]
        parts = []
        for some in points.split(_ROWS):
            at = some[:, None]
            squared = torch.maximum(low - at, at - high).clamp(min=0).square().sum(-1)
            parts.append(squared.amin(1).sqrt())
        return torch.cat(parts)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size: the leaves lie in cells of a cube that is halved along each axis in turns."""
    p = SIZES[size]
    leaf = torch.arange(2 ** p["depth"])
    corner, extent = torch.zeros(2 ** p["depth"], 3), torch.ones(3)
    for level in range(p["depth"]):
        axis = level % 3
        extent[axis] /= 2
        corner[:, axis] += extent[axis] * (leaf >> (p["depth"] - 1 - level) & 1)
    low = corner + extent * torch.rand(leaf.numel(), 3) / 2
    levels = [torch.cat((low, low + extent * torch.rand(leaf.numel(), 3) / 2), dim=1)]
    while levels[0].shape[0] > 1:
        pair = levels[0].reshape(-1, 2, 6)
        levels.insert(0, torch.cat((pair[..., :3].amin(1), pair[..., 3:].amax(1)), dim=1))
    return [0.5 + 0.5 * torch.randn(p["queries"], 3), torch.cat(levels)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
