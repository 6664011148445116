"""Colour from a full image of brightness and two smaller ones of chroma."""

import torch

SIZES = {
    "small": {"chroma_height": 31, "chroma_width": 53},
    "medium": {"chroma_height": 540, "chroma_width": 960},
    "full": {"chroma_height": 4320, "chroma_width": 7680},
}
TAGS = ("stencil", "gather")
OP_FAMILY = "gather"
MENDS = (
    "kernrl returns three tensors, of which one is an input. Here chroma is upsampled and turned into red, green and "
    "blue in one tensor."
)


class Model(torch.nn.Module):
    """BT.601 of y and of u and v, upsampled by 2 in both directions, linearly."""

    def forward(self, y: torch.Tensor, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """(2 height, 2 width) and twice (height, width) -> (3, 2 height, 2 width): red, green, blue."""
        small = torch.stack((u, v))[None]
        wide = torch.nn.functional.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)
        u, v = wide[0].unbind(0)
        return torch.stack((y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    height, width = SIZES[size]["chroma_height"], SIZES[size]["chroma_width"]
    return [torch.rand(2 * height, 2 * width), torch.rand(height, width) - 0.5, torch.rand(height, width) - 0.5]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
