"""Mean of each pixel's neighbourhood."""

import torch

SIZES = {
    "small": {"images": 2, "height": 61, "width": 127, "radius": 3},
    "medium": {"images": 2, "height": 1080, "width": 1920, "radius": 5},
    "full": {"images": 32, "height": 1080, "width": 1920, "radius": 5},
}
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = "kernrl filters one image from [0, 1), whose every mean is near 1/2. Here there are 32, of normal values."


class Model(torch.nn.Module):
    """Mean over a square window; pixels outside are 0."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, height, width) -> the same shape."""
        return torch.nn.functional.avg_pool2d(x[:, None], 2 * self.radius + 1, stride=1, padding=self.radius)[:, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["images"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["radius"]]
