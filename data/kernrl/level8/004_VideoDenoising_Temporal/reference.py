"""Mean of a frame and of its neighbours in time, each moved along a flow."""

import torch

SIZES = {
    "small": {"neighbours": 3, "height": 59, "width": 91},
    "medium": {"neighbours": 4, "height": 480, "width": 640},
    "full": {"neighbours": 4, "height": 2160, "width": 3840},
}
PRECISIONS = ("fp32",)
TAGS = ("gather", "reduction")
OP_FAMILY = "gather"
MENDS = (
    "kernrl scales the flow by half the width where half of one pixel less is meant. Here the flow is in pixels, and "
    "frames are 4K."
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
    """(frame + sum over neighbours k of neighbours_k(p + flows_k)) / (1 + neighbours)."""

    def forward(self, frame: torch.Tensor, others: torch.Tensor, flows: torch.Tensor) -> torch.Tensor:
        """(height, width), (neighbours, height, width) and (neighbours, height, width, 2) -> (height, width)."""
        total, at = frame, places(*frame.shape, flows)
        for other, flow in zip(others, flows, strict=True):
            total = total + sampled(other, at + flow)
        return total / (1 + others.shape[0])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["neighbours"], p["height"], p["width"])
    return [torch.randn(shape[1:]), torch.randn(shape), 3 * torch.randn(*shape, 2)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
