"""How close rays come to the surfaces of spheres."""

import torch

SIZES = {
    "small": {"rays": 1013, "spheres": 67},
    "medium": {"rays": 65536, "spheres": 256},
    "full": {"rays": 1048576, "spheres": 512},
}
SCALARS = {"epsilon": 0.0001}
PRECISIONS = ("fp32",)
TAGS = ("pairwise",)
OP_FAMILY = "pairwise"
MENDS = (
    "kernrl returns four tensors, its reference loops in Python over the spheres, and where a ray grazes a sphere the"
    " nearest hit jumps by one rounding. Here the result is the least distance to any surface, negative inside, which"
    " is continuous; directions need no unit length."
)
_ROWS = 2048


class Model(torch.nn.Module):
    """min over spheres of |o + t d - c| - r, with t = max((c - o) . d / (d . d + epsilon), 0)."""

    def forward(
        self, origins: torch.Tensor, directions: torch.Tensor, centers: torch.Tensor, radii: torch.Tensor
    ) -> torch.Tensor:
        """Twice (rays, 3), (spheres, 3) and (spheres,) -> (rays,)."""
        parts = []
        for origin, direction in zip(origins.split(_ROWS), directions.split(_ROWS), strict=True):
            apart = centers - origin[:, None]
            along = (apart * direction[:, None]).sum(-1) / (
                direction.square().sum(-1, keepdim=True) + SCALARS["epsilon"]
            )
            nearest = along.clamp(min=0)[..., None] * direction[:, None] - apart
            parts.append((nearest.square().sum(-1).sqrt() - radii).amin(1))
        return torch.cat(parts)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        torch.randn(p["rays"], 3),
        torch.randn(p["rays"], 3),
        4 * torch.randn(p["spheres"], 3),
        0.1 + torch.rand(p["spheres"]),
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
