"""Exclusive prefix sums that begin anew wherever a flag stands."""

import torch

SIZES = {
    "small": {"rows": 7, "length": 1021},
    "medium": {"rows": 1024, "length": 4096},
    "full": {"rows": 16384, "length": 4096},
}
PRECISIONS = ("fp32",)
RANGES = {"heads": (0, 1)}
TAGS = ("scan",)
OP_FAMILY = "scan"
MENDS = (
    "kernrl's reference is a loop over a Python list of a thousand segments. Here there are millions, values have no "
    "mean, and the reference is three tensor operations."
)
_SEGMENT = 16


class Model(torch.nn.Module):
    """Sum of the elements before each one in its segment; a segment begins where `heads` is 1, and with each row."""

    def forward(self, values: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """(rows, length) and (rows, length) of 8 bits -> (rows, length)."""
        before = values.cumsum(1) - values
        places = torch.arange(values.shape[1], device=values.device).expand(values.shape)
        head = torch.where(heads.bool(), places, 0).cummax(1).values
        return before - before.gather(1, head)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    heads = torch.randint(0, _SEGMENT, (p["rows"], p["length"])) == 0
    return [torch.randn(p["rows"], p["length"]), heads.to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
