"""Edges between blocks of a frame smoothed where they are weak."""

import torch

SIZES = {
    "small": {"height": 53, "width": 99, "block": 8, "alpha": 40, "beta": 20, "most": 4},
    "medium": {"height": 1080, "width": 1920, "block": 8, "alpha": 40, "beta": 20, "most": 4},
    "full": {"height": 4320, "width": 7680, "block": 8, "alpha": 40, "beta": 20, "most": 4},
}
PRECISIONS = ("fp32",)
RANGES = {"x": (0, 255)}
TAGS = ("stencil",)
OP_FAMILY = "stencil"
MENDS = (
    "kernrl adds the rounding of integers to floating-point values in [0, 1), loops over pixels in Python, and its "
    "thresholds flip by one rounding. Here pixels are bytes, and the arithmetic is exact."
)


class Model(torch.nn.Module):
    """For p1 p0 | q0 q1 across an edge, where |p0 - q0| < alpha, |p1 - p0| < beta and |q1 - q0| < beta: p0 + d, q0 - d.

    d is (4 (q0 - p0) + p1 - q1 + 4) / 8, rounded down, within +-most; results stay within 0 to 255.
    """

    def __init__(self, block: int, alpha: int, beta: int, most: int) -> None:
        super().__init__()
        if block < 4:
            raise ValueError("edges share pixels")
        self.block, self.alpha, self.beta, self.most = block, alpha, beta, most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(height, width) bytes -> the same shape: vertical edges first, then, on the outcome, horizontal ones."""
        return self.filtered(self.filtered(x.int()).T).T.to(torch.uint8)

    def filtered(self, x: torch.Tensor) -> torch.Tensor:
        """The frame with its vertical edges filtered."""
        edges = torch.arange(self.block, x.shape[1] - 1, self.block, device=x.device)
        p1, p0, q0, q1 = (x[:, edges + offset] for offset in (-2, -1, 0, 1))
        weak = ((p0 - q0).abs() < self.alpha) & ((p1 - p0).abs() < self.beta) & ((q1 - q0).abs() < self.beta)
        change = ((4 * (q0 - p0) + p1 - q1 + 4) >> 3).clamp(-self.most, self.most) * weak
        result = x.clone()
        result[:, edges - 1], result[:, edges] = (p0 + change).clamp(0, 255), (q0 - change).clamp(0, 255)
        return result


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size: neighbours differ by 21 on average, so that about half of all edges are weak."""
    p = SIZES[size]
    return [torch.randint(96, 160, (p["height"], p["width"])).to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["block"], p["alpha"], p["beta"], p["most"]]
