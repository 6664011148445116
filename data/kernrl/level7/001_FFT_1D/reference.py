"""Discrete Fourier transforms of complex signals."""

import torch

SIZES = {
    "small": {"signals": 37, "length": 128},
    "medium": {"signals": 4, "length": 262144},
    "full": {"signals": 64, "length": 1048576},
}
PRECISIONS = ("fp32",)
TAGS = ("fft",)
OP_FAMILY = "fft"
MENDS = (
    "kernrl transforms one real signal, compares complex results without their imaginary parts, and forgives 2 % of "
    "the largest. Here there are 64 complex ones, as pairs of numbers, each judged."
)


class Model(torch.nn.Module):
    """sum over k of x[k] exp(-2 pi i j k / length)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(signals, length, 2), real and imaginary parts -> the same shape. The length is a power of two."""
        if x.shape[1] & (x.shape[1] - 1):
            raise ValueError("the length is no power of two")
        return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["signals"], p["length"], 2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
