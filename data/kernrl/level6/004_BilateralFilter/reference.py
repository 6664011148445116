"""Smoothing that keeps edges: neighbours weigh by distance and by likeness."""

import torch

SIZES = {
    "small": {"images": 2, "height": 61, "width": 83, "radius": 3},
    "medium": {"images": 1, "height": 1080, "width": 1920, "radius": 4},
    "full": {"images": 8, "height": 1080, "width": 1920, "radius": 4},
}
SCALARS = {"sigma_space": 2.0, "sigma_value": 0.5}
PRECISIONS = ("fp32",)
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = (
    "kernrl pads a matrix by reflection, which PyTorch refuses, and its reference is a Python loop over pixels. Here "
    "images are padded as a batch, and the reference loops over the window alone."
)


class Model(torch.nn.Module):
    """Mean of the window, weighted by exp(-distance^2 / (2 sigma_space^2) - difference^2 / (2 sigma_value^2))."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, height, width) -> the same shape; borders are reflected."""
        wide = torch.nn.functional.pad(x[:, None], (self.radius,) * 4, mode="reflect")[:, 0]
        total, weights = torch.zeros_like(x), torch.zeros_like(x)
        space, value = (-0.5 / SCALARS[name] ** 2 for name in ("sigma_space", "sigma_value"))
        for row in range(2 * self.radius + 1):
            for column in range(2 * self.radius + 1):
                neighbour = wide[:, row : row + x.shape[1], column : column + x.shape[2]]
                squared = (row - self.radius) ** 2 + (column - self.radius) ** 2
                weight = torch.exp(space * squared + value * (neighbour - x).square())
                total, weights = total + weight * neighbour, weights + weight
        return total / weights


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["images"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["radius"]]
