"""Frames seen through a projective map each."""

import torch

SIZES = {
    "small": {"frames": 3, "height": 53, "width": 97},
    "medium": {"frames": 4, "height": 1080, "width": 1920},
    "full": {"frames": 16, "height": 2160, "width": 3840},
}
PRECISIONS = ("fp32",)
KEPT = ("maps",)
TAGS = ("gather",)
OP_FAMILY = "gather"
MENDS = (
    "kernrl warps one frame by one fixed matrix, which is inverted on the GPU. Here each of 16 frames has a map of "
    "its own, from the result to the frame."
)


def places(height: int, width: int, like: torch.Tensor) -> torch.Tensor:
    """(height, width, 2): row and column of each pixel, of a tensor's type."""
    extents = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (height, width))
    return torch.stack(torch.meshgrid(*extents, indexing="ij"), dim=-1)


def sampled(frame: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """A frame between its pixels, linearly; places outside become the nearest on the border, and 0 / 0 becomes 0."""
    last = [extent - 1 for extent in frame.shape]
    row, column = (at[..., axis].clamp(0, last[axis]).nan_to_num(0.0) for axis in (0, 1))
    top, left = row.floor().long(), column.floor().long()
    bottom, right = (top + 1).clamp(max=last[0]), (left + 1).clamp(max=last[1])
    down, over = row - top, column - left
    above = frame[top, left] + over * (frame[top, right] - frame[top, left])
    below = frame[bottom, left] + over * (frame[bottom, right] - frame[bottom, left])
    return above + down * (below - above)


class Model(torch.nn.Module):
    """frame(p / w) with (down, right, w) = map (row, column, 1)."""

    def forward(self, x: torch.Tensor, maps: torch.Tensor) -> torch.Tensor:
        """(frames, height, width) and (frames, 3, 3) -> (frames, height, width)."""
        at = places(*x.shape[1:], x)
        whole = torch.cat((at, torch.ones_like(at[..., :1])), dim=-1)
        results = []
        for frame, one in zip(x, maps, strict=True):
            moved = (whole[..., None, :] * one).sum(-1)
            results.append(sampled(frame, moved[..., :2] / moved[..., 2:]))
        return torch.stack(results)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size: maps near the identity, w between 0.8 and 1.2."""
    p = SIZES[size]
    spread = torch.tensor([[0.05, 0.05, 4.0], [0.05, 0.05, 4.0], [0.1 / p["height"], 0.1 / p["width"], 0.0]])
    maps = torch.eye(3) + spread * (2 * torch.rand(p["frames"], 3, 3) - 1)
    return [torch.rand(p["frames"], p["height"], p["width"]), maps]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
