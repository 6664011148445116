"""Two-dimensional discrete Fourier transforms of complex images."""

import torch

SIZES = {
    "small": {"images": 19, "height": 8, "width": 32},
    "medium": {"images": 2, "height": 512, "width": 1024},
    "full": {"images": 8, "height": 2048, "width": 4096},
}
PRECISIONS = ("fp32",)
TAGS = ("fft",)
OP_FAMILY = "fft"
MENDS = (
    "kernrl compares complex results without their imaginary parts, and forgives 2 % of the largest. Here images are "
    "complex, as pairs of numbers, each judged."
)


class Model(torch.nn.Module):
    """The transform along rows and columns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, height, width, 2), real and imaginary parts -> the same shape. Extents are powers of two."""
        if any(extent & (extent - 1) for extent in x.shape[1:3]):
            raise ValueError("an extent is no power of two")
        return torch.view_as_real(torch.fft.fft2(torch.view_as_complex(x)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["images"], p["height"], p["width"], 2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
