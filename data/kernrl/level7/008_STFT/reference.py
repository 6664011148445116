"""Spectra of overlapping, windowed frames of signals."""

import torch

SIZES = {
    "small": {"signals": 2, "length": 1021, "frame": 128, "hop": 37},
    "medium": {"signals": 8, "length": 160000, "frame": 1024, "hop": 256},
    "full": {"signals": 64, "length": 1600000, "frame": 1024, "hop": 256},
}
PRECISIONS = ("fp32",)
TAGS = ("fft",)
OP_FAMILY = "fft"
MENDS = (
    "kernrl compares complex results without their imaginary parts, and transforms one signal of ten seconds. Here "
    "there are 64 of 100 s, real and imaginary parts are judged, and the window is an input."
)


class Model(torch.nn.Module):
    """The transform of window times frame, frequencies 0 to frame / 2. Frame i is centred at i hop; borders reflect."""

    def __init__(self, frame: int, hop: int) -> None:
        super().__init__()
        if frame & (frame - 1):
            raise ValueError("the frame is no power of two")
        self.frame, self.hop = frame, hop

    def forward(self, x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        """(signals, length) and (frame,) -> (signals, length / hop + 1, frame / 2 + 1, 2): real and imaginary parts."""
        half = self.frame // 2
        wide = torch.nn.functional.pad(x[:, None], (half, half), mode="reflect")[:, 0]
        return torch.view_as_real(torch.fft.rfft(wide.unfold(1, self.frame, self.hop) * window))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    place = (torch.arange(p["frame"]) + 0.5) / p["frame"]
    return [torch.randn(p["signals"], p["length"]), torch.sin(torch.pi * place).square() + 0.1 * torch.rand(p["frame"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["frame"], SIZES[size]["hop"]]
