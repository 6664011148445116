"""A frame between two frames, by the flow from one to the other."""

import torch

SIZES = {
    "small": {"height": 67, "width": 121},
    "medium": {"height": 1080, "width": 1920},
    "full": {"height": 4320, "width": 7680},
}
SCALARS = {"time": 0.375}
PRECISIONS = ("fp32",)
TAGS = ("gather",)
OP_FAMILY = "gather"
MENDS = (
    "kernrl scales the flow by half the width where half of one pixel less is meant, and its frames fit any L2. Here "
    "the flow is in pixels, and frames are 8K."
)


def places(height: int, width: int, like: torch.Tensor) -> torch.Tensor:
    """(height, width, 2): row and column of each pixel, of a tensor's type."""
    extents = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (height, width))
    return torch.stack(torch.meshgrid(*extents, indexing="ij"), dim=-1)


def sampled(frame: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """A frame between its pixels, linearly; places outside become the nearest on the border."""
    last = [extent - 1 for extent in frame.shape]
    row, column = (at[..., axis].clamp(0, last[axis]) for axis in (0, 1))
    top, left = row.floor().long(), column.floor().long()
    bottom, right = (top + 1).clamp(max=last[0]), (left + 1).clamp(max=last[1])
    down, over = row - top, column - left
    above = frame[top, left] + over * (frame[top, right] - frame[top, left])
    below = frame[bottom, left] + over * (frame[bottom, right] - frame[bottom, left])
    return above + down * (below - above)


class Model(torch.nn.Module):
    """(1 - time) first(p - time flow) + time second(p + (1 - time) flow)."""

    def forward(self, first: torch.Tensor, second: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
        """Twice (height, width) and (height, width, 2), down, then right -> (height, width)."""
        time, at = SCALARS["time"], places(*first.shape, flow)
        return (1 - time) * sampled(first, at - time * flow) + time * sampled(second, at + (1 - time) * flow)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["height"], p["width"])
    return [torch.rand(shape), torch.rand(shape), 4 * torch.randn(*shape, 2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
