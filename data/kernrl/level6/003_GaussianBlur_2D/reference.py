"""Blur of images by a separable window."""

import torch

SIZES = {
    "small": {"images": 2, "height": 67, "width": 131, "taps_count": 7},
    "medium": {"images": 2, "height": 1080, "width": 1920, "taps_count": 15},
    "full": {"images": 16, "height": 1080, "width": 1920, "taps_count": 15},
}
PRECISIONS = ("fp32",)
TAGS = ("stencil", "conv")
OP_FAMILY = "stencil"
MENDS = (
    "kernrl blurs one image, with a window that a kernel may write out. Here the window is an input, and there are 16"
    " images."
)


class Model(torch.nn.Module):
    """Sum over the window of taps[i] taps[j] pixel; pixels outside are 0."""

    def forward(self, x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
        """(images, height, width) and (taps,), an odd number -> (images, height, width)."""
        if taps.numel() % 2 == 0:
            raise ValueError("the window has no middle")
        window = taps[:, None] * taps[None, :]
        return torch.nn.functional.conv2d(x[:, None], window[None, None], padding=taps.numel() // 2)[:, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    away = torch.arange(p["taps_count"]) - p["taps_count"] // 2
    taps = torch.exp(-0.1 * away.square()) * (0.9 + 0.2 * torch.rand(p["taps_count"]))
    return [torch.rand(p["images"], p["height"], p["width"]), taps / taps.sum()]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
