"""One Jacobi step of the heat equation on a grid whose border is held."""

import torch

SIZES = {
    "small": {"height": 131, "width": 203},
    "medium": {"height": 2048, "width": 2048},
    "full": {"height": 8192, "width": 8192},
}
SCALARS = {"alpha": 0.2}
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = "kernrl's grid of 2048 x 2048 fits the L2 of a large GPU; here 8192 x 8192."


class Model(torch.nn.Module):
    """u + alpha (north + south + west + east - 4 u) inside; the border stays as it is."""

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """(height, width) -> (height, width)."""
        inner = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        result = u.clone()
        result[1:-1, 1:-1] = inner + SCALARS["alpha"] * (around - 4 * inner)
        return result


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
