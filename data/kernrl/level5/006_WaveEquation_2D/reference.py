"""One leapfrog step of the wave equation on a grid whose border is at rest."""

import torch

SIZES = {
    "small": {"height": 137, "width": 211},
    "medium": {"height": 2048, "width": 2048},
    "full": {"height": 8192, "width": 8192},
}
SCALARS = {"courant_squared": 0.25}
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = (
    "kernrl's fixed fields move by 4e-6 in a step, so that a copy of the input passes. Here fields are random, the "
    "Courant number is 0.5, and the grid is 8192 x 8192."
)


class Model(torch.nn.Module):
    """2 u - u_before + c^2 (north + south + west + east - 4 u); neighbours beyond the border are 0."""

    def forward(self, u: torch.Tensor, u_before: torch.Tensor) -> torch.Tensor:
        """Twice (height, width) -> (height, width)."""
        wide = torch.nn.functional.pad(u, (1, 1, 1, 1))
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return 2 * u - u_before + SCALARS["courant_squared"] * (around - 4 * u)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["height"], p["width"]), torch.randn(p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
