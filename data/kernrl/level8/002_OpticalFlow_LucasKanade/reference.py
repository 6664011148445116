"""Motion between two frames, by least squares over a window around each pixel."""

import torch

SIZES = {
    "small": {"height": 61, "width": 83, "radius": 3},
    "medium": {"height": 480, "width": 640, "radius": 7},
    "full": {"height": 2160, "width": 3840, "radius": 7},
}
SCALARS = {"damping": 0.1}
PRECISIONS = ("fp32",)
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = (
    "kernrl pads a matrix by replication, which PyTorch refuses, loops over pixels in Python, and gives 0 below a "
    "threshold of the determinant, where results jump. Here the system is damped, and both parts of the flow come as "
    "one tensor."
)


class Model(torch.nn.Module):
    """(xx + damping, xy; xy, yy + damping) flow = -(xt, yt); xx is a sum of squared x-gradients, and so on."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Twice (height, width) -> (2, height, width): to the right, then down. Pixels outside are 0."""
        wide = torch.nn.functional.pad(first, (1, 1, 1, 1))
        x, y, t = (wide[1:-1, 2:] - wide[1:-1, :-2]) / 2, (wide[2:, 1:-1] - wide[:-2, 1:-1]) / 2, second - first
        products = torch.stack((x * x, x * y, y * y, x * t, y * t))
        window = 2 * self.radius + 1
        means = torch.nn.functional.avg_pool2d(products[:, None], window, stride=1, padding=self.radius)
        xx, xy, yy, xt, yt = means[:, 0].mul(window**2).unbind(0)
        xx, yy = xx + SCALARS["damping"], yy + SCALARS["damping"]
        determinant = xx * yy - xy * xy
        return torch.stack((xy * yt - yy * xt, xy * xt - xx * yt)) / determinant


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["height"], p["width"]) for _ in range(2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["radius"]]
