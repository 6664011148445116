"""Colours of pixels in another space."""

import torch

SIZES = {"small": {"pixels": 5003}, "medium": {"pixels": 2073600}, "full": {"pixels": 33177600}}
TAGS = ("elementwise",)
OP_FAMILY = "elementwise"
MENDS = (
    "kernrl's image is too small for a GPU to be measured on, and its matrix is a constant. Here it is an input, with"
    " an offset, and the image has 33 million pixels."
)


class Model(torch.nn.Module):
    """matrix colour + offset, pixel by pixel."""

    def forward(self, x: torch.Tensor, matrix: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
        """(pixels, 3), (3, 3) and (3,) -> (pixels, 3)."""
        return x @ matrix.T + offset


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    matrix = torch.tensor([[0.299, 0.587, 0.114], [-0.14713, -0.28886, 0.436], [0.615, -0.51499, -0.10001]])
    return [torch.rand(SIZES[size]["pixels"], 3), matrix * (0.9 + 0.2 * torch.rand(3, 3)), torch.rand(3)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
