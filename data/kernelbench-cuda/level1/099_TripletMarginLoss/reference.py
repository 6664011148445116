"""Triplet margin loss: anchors shall be nearer to positives than to negatives."""

import torch

SIZES = {
    "small": {"batch_size": 53, "dim": 1009},
    "medium": {"batch_size": 8192, "dim": 8192},
    "full": {"batch_size": 32768, "dim": 8192},
    "v0": {"batch_size": 128, "dim": 4096},
}
SCALARS = {"margin": 1.0}
TAGS = ("loss",)
MENDS = (
    "KernelBench draws all three from [0, 1): all distances are about the same, and the loss is the margin "
    "whatever the inputs are. Here each row of positives and negatives has its own distance from the anchor."
)


class Model(torch.nn.Module):
    """Mean over rows of max(||a - p|| - ||a - n|| + margin, 0), where 1e-6 is added to each difference."""

    def __init__(self, margin: float) -> None:
        super().__init__()
        self.loss_fn = torch.nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim) three times -> scalar."""
        return self.loss_fn(anchor, positive, negative)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape, per_row = (p["batch_size"], p["dim"]), (p["batch_size"], 1)
    anchor = torch.rand(shape)
    others = [anchor + torch.rand(per_row) * torch.randn(shape) for _ in range(2)]
    return [anchor, *others]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SCALARS["margin"]]
