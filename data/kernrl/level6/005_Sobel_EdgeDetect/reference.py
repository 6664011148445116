"""Gradients of images, and their magnitude."""

import torch

SIZES = {
    "small": {"images": 2, "height": 67, "width": 129},
    "medium": {"images": 2, "height": 1080, "width": 1920},
    "full": {"images": 32, "height": 1080, "width": 1920},
}
PRECISIONS = ("fp32",)
OUTPUTS = ("magnitude", "across", "down")
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = (
    "kernrl returns a magnitude and an angle, which jumps by a whole turn where a gradient points left. Here both "
    "gradients are returned in its place."
)
WEIGHTS = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))


class Model(torch.nn.Module):
    """Sobel's two windows; pixels outside are 0."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(images, height, width) -> three of the same shape."""
        window = torch.tensor(WEIGHTS, dtype=x.dtype, device=x.device)
        across, down = torch.nn.functional.conv2d(
            x[:, None], torch.stack((window, window.T))[:, None], padding=1
        ).unbind(1)
        return (across.square() + down.square()).sqrt(), across, down


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["images"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
