"""Images in another size, between their pixels."""

import torch

SIZES = {
    "small": {"images": 2, "height": 61, "width": 83, "new_height": 37, "new_width": 101},
    "medium": {"images": 2, "height": 2160, "width": 3840, "new_height": 1080, "new_width": 1920},
    "full": {"images": 16, "height": 2160, "width": 3840, "new_height": 1620, "new_width": 2880},
}
PRECISIONS = ("fp32",)
TAGS = ("gather", "stencil")
OP_FAMILY = "gather"
MENDS = (
    "kernrl halves one image, where every place lies in the middle of four pixels. Here 16 images shrink by a quarter."
)


class Model(torch.nn.Module):
    """Linear in both directions; centres of pixels lie at halves; no smoothing before."""

    def __init__(self, new_height: int, new_width: int) -> None:
        super().__init__()
        self.extents = (new_height, new_width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, height, width) -> (images, new_height, new_width)."""
        return torch.nn.functional.interpolate(x[:, None], self.extents, mode="bilinear", align_corners=False)[:, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["images"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["new_height"], SIZES[size]["new_width"]]
