"""How many points of each row lie in a quarter circle."""

import torch

SIZES = {
    "small": {"rows": 67, "points": 517},
    "medium": {"rows": 1024, "points": 4096},
    "full": {"rows": 16384, "points": 4096},
}
PRECISIONS = ("fp32",)
RANGES = {"coordinates": (0, 32767)}
TAGS = ("reduction",)
OP_FAMILY = "reduction"
MENDS = (
    "kernrl returns one number that is 3.1416 whatever the points are. Here points have whole coordinates, and each "
    "row's count is exact."
)
RADIUS = 32768


class Model(torch.nn.Module):
    """Points with x^2 + y^2 < 32768^2, per row: pi / 4 of them."""

    def forward(self, coordinates: torch.Tensor) -> torch.Tensor:
        """(rows, points, 2) of 16 bits -> (rows,) of 32 bits."""
        return (coordinates.long().square().sum(-1) < RADIUS**2).sum(-1).int()


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randint(0, RADIUS, (p["rows"], p["points"], 2)).short()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
