"""Likeness of an image to a template at every place."""

import torch

SIZES = {
    "small": {"height": 61, "width": 83, "extent": 8},
    "medium": {"height": 1024, "width": 1024, "extent": 32},
    "full": {"height": 4096, "width": 4096, "extent": 32},
}
PRECISIONS = ("fp32",)
TAGS = ("conv", "stencil")
OP_FAMILY = "convolution"
MENDS = (
    "kernrl draws the template anew in every model, so that the reference fails against itself. Here it is an input, "
    "and has no mean."
)


class Model(torch.nn.Module):
    """sum over the window of window[i, j] x[row + i - pad, column + j - pad], with pad = extent / 2; 0 outside."""

    def forward(self, x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        """(height, width) and (extent, extent) -> (height + 2 pad - extent + 1, width + 2 pad - extent + 1)."""
        return torch.nn.functional.conv2d(x[None, None], window[None, None], padding=window.shape[0] // 2)[0, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["height"], p["width"]), torch.randn(p["extent"], p["extent"]) / p["extent"]]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
