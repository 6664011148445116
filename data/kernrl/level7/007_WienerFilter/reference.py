"""A blurred, noisy image restored in the domain of frequencies."""

import torch

SIZES = {
    "small": {"height": 32, "width": 64, "extent": 7},
    "medium": {"height": 1024, "width": 1024, "extent": 15},
    "full": {"height": 4096, "width": 4096, "extent": 15},
}
SCALARS = {"noise": 0.05}
PRECISIONS = ("fp32",)
TAGS = ("fft",)
OP_FAMILY = "fft"
MENDS = (
    "kernrl centres the window off by one, and builds it in the model. Here it is an input, and its middle is the "
    "origin."
)


class Model(torch.nn.Module):
    """The real part of F^-1(F(x) conj(H) / (|H|^2 + noise)), where H is of the window around the origin."""

    def forward(self, x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        """(height, width), powers of two, and (extent, extent), an odd number -> (height, width)."""
        if any(extent & (extent - 1) for extent in x.shape) or window.shape[0] % 2 == 0:
            raise ValueError("an extent is no power of two, or the window has no middle")
        extent = window.shape[0]
        wide = torch.nn.functional.pad(window, (0, x.shape[1] - extent, 0, x.shape[0] - extent))
        blur = torch.fft.fft2(wide.roll((-(extent // 2), -(extent // 2)), (0, 1)))
        return torch.fft.ifft2(torch.fft.fft2(x) * blur.conj() / (blur.abs().square() + SCALARS["noise"])).real


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["height"], p["width"]), torch.rand(p["extent"], p["extent"]) / p["extent"]]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
