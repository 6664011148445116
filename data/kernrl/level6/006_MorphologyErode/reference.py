"""Least value of each pixel's neighbourhood."""

import torch

SIZES = {
    "small": {"images": 2, "height": 61, "width": 125, "radius": 2},
    "medium": {"images": 2, "height": 1080, "width": 1920, "radius": 2},
    "full": {"images": 32, "height": 1080, "width": 1920, "radius": 2},
}
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = "kernrl's images hold zeros and ones, of which the least in 25 is zero almost surely. Here they are grey."


class Model(torch.nn.Module):
    """Minimum over a square window; pixels outside do not count."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, height, width) -> the same shape."""
        window = 2 * self.radius + 1
        return -torch.nn.functional.max_pool2d(-x[:, None], window, stride=1, padding=self.radius)[:, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["images"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["radius"]]
