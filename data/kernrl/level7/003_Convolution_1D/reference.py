"""Long signals filtered by short ones."""

import torch

SIZES = {
    "small": {"signals": 2, "length": 2003, "taps_count": 31},
    "medium": {"signals": 4, "length": 1048576, "taps_count": 127},
    "full": {"signals": 16, "length": 4194304, "taps_count": 127},
}
TAGS = ("conv", "stencil")
OP_FAMILY = "convolution"
MENDS = "kernrl draws the taps anew in every model, so that the reference fails against itself. Here they are an input."


class Model(torch.nn.Module):
    """sum over k of taps[k] x[i + k]."""

    def forward(self, x: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
        """(signals, length) and (taps,) -> (signals, length - taps + 1)."""
        return torch.nn.functional.conv1d(x[:, None], taps[None, None])[:, 0]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["signals"], p["length"]), torch.randn(p["taps_count"]) / p["taps_count"] ** 0.5]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
