"""How much pairs of frames differ: pixel by pixel, and in the distribution of their brightness."""

import torch

SIZES = {
    "small": {"pairs": 11, "pixels": 5003},
    "medium": {"pairs": 16, "pixels": 307200},
    "full": {"pairs": 64, "pixels": 2073600},
}
PRECISIONS = ("fp32",)
OUTPUTS = ("pixel_difference", "histogram_difference")
RANGES = {"first": (0, 255), "second": (0, 255)}
TAGS = ("histogram", "reduction")
OP_FAMILY = "reduction"
MENDS = (
    "kernrl returns three numbers that are nearly the same for any two frames of noise. Here 64 pairs of different "
    "contrast are compared, in bytes, and both sums are exact."
)
BINS = 16


class Model(torch.nn.Module):
    """Sum |first - second|, and sum over 16 bins of brightness of |count in first - count in second|."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Twice (pairs, pixels) bytes -> (pairs,) of 64 bits and (pairs,) of 32 bits."""
        counts = [
            torch.zeros(frames.shape[0], BINS, dtype=torch.int32, device=frames.device).scatter_add(
                1, (frames // (256 // BINS)).long(), torch.ones_like(frames, dtype=torch.int32)
            )
            for frames in (first, second)
        ]
        apart = (first.int() - second.int()).abs().sum(1, dtype=torch.int64)
        return apart, (counts[0] - counts[1]).abs().sum(1, dtype=torch.int32)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    darkest = torch.randint(0, 128, (2, p["pairs"], 1))
    frames = darkest + torch.randint(0, 128, (2, p["pairs"], p["pixels"]))
    return list(frames.to(torch.uint8).unbind(0))


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
